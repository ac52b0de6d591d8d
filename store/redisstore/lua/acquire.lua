-- KEYS: l, w, q, p, f. ARGV: token, ttl ms, note, inbox, fence (0, 1), take a place if refused (0, 1), time on the caller's clock. Returns µs, then 2 grant | 3 lease, ms left.
local l, w, q, p, f = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, ttl, note, inbox, fence, queue = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1'
local now = time()

local token, grant, left = lease(l)
if token == me then
  redis.call('PEXPIRE', l, ttl)
  listen(w, inbox, tonumber(ttl))
  return {now, 2, grant}
end

local place = cmsgpack.pack({now, fence, inbox, note, ARGV[7]})
local placed = false
if queue then
  if redis.call('EXISTS', q) == 0 then redis.call('DEL', p) end -- one of them may have been evicted
  placed = redis.call('HEXISTS', p, me) == 1
  if placed then redis.call('HSET', p, me, place) end -- asking keeps a place alive
end

-- A free lease belongs to who has waited longest. Nobody barges in, not even by a plain acquire.
if not token then
  local other, others = first(q, p, now)
  if not other or other == me then
    grant = grant_to(l, f, me, ttl, note, fence, now, grant)
    listen(w, inbox, tonumber(ttl))
    return {now, 2, grant}
  end
  hand(l, w, f, other, others, now, grant)
  left = QUEUE_TTL
end

if queue then
  if not placed then
    redis.call('HSET', p, me, place)
    redis.call('RPUSH', q, me)
  end
  redis.call('PEXPIRE', p, 10 * QUEUE_TTL)
  redis.call('PEXPIRE', q, 10 * QUEUE_TTL)
end
listen(w, inbox, left)
return {now, 3, redis.call('GET', l), left}
