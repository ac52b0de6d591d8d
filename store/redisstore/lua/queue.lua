-- Put between common.lua and the scripts that know the queue: q lists the tokens in order, p maps a token
-- to its place {asked µs, fence, inbox, note, asked by its own clock}, f is the last fence. All of them know QUEUE_TTL in ms.

local QUEUE_TTL = 1000
local FENCE_TTL = 30 * 24 * 3600 * 1000

-- grant_to makes a new lease for token and returns its grant.
local function grant_to(l, f, token, ttl, note, fence, now, last)
  if fence == '1' then
    local remembered = redis.call('GET', f)
    if number(remembered) and (not number(last) or remembered > last) then last = remembered end
  end
  local grant = mint(now, last)
  if fence == '1' then redis.call('SET', f, grant, 'PX', FENCE_TTL) end
  redis.call('SET', l, token .. grant .. note, 'PX', ttl)
  return grant
end

-- live reads a place, nil if its owner has not asked for it lately.
local function live(packed, now)
  local ok, place = pcall(cmsgpack.unpack, packed or '')
  if not ok or type(place) ~= 'table' or #place ~= 5 or type(place[1]) ~= 'number' then return nil end
  if place[1] + QUEUE_TTL * 1000 >= now then return place end
end

-- first takes the first live place off the queue. Returns its token and the place.
local function first(q, p, now)
  while true do
    local token = redis.call('LPOP', q)
    if not token then return nil end
    local place = live(redis.call('HGET', p, token), now)
    redis.call('HDEL', p, token)
    if place then return token, place end
  end
end

-- hand grants the lease to token from place and tells it. ended is the grant before, if any.
local function hand(l, w, f, token, place, now, ended)
  local grant = grant_to(l, f, token, QUEUE_TTL, place[4], place[2], now, ended)
  if place[3] ~= '' then tell(place[3], message('q', ended, w, token .. grant .. place[5] .. place[2])) end
end

-- finish ends the lease: it goes to who waits first, else everybody is told.
local function finish(l, w, q, p, f, grant)
  local now = time()
  local token, place = first(q, p, now)
  if token then
    return hand(l, w, f, token, place, now, grant)
  end
  redis.call('DEL', l)
  wake(w, '', message('d', grant, w, ''))
end
