-- KEYS: v, l, w. ARGV: token, ttl ms, note, version seen, inbox. Returns µs, then 1 entry | 2 grant, failure | 3 lease, ms left | 4 failure.
local v, l, w = KEYS[1], KEYS[2], KEYS[3]
local now = time()

local stored = version(v)
if stored and stored ~= ARGV[4] then return {now, 1, redis.call('GET', v)} end

local token, grant, left = lease(l)
if token == ARGV[1] then
  redis.call('PEXPIRE', l, ARGV[2])
  listen(w, ARGV[5], tonumber(ARGV[2]))
  return {now, 2, grant, ''}
end
if token then
  listen(w, ARGV[5], left)
  return {now, 3, redis.call('GET', l), left}
end

local failure = ''
if grant then
  failure = redis.call('GET', l)
  local cool = number(string.sub(failure, 33, 48))
  if cool and cool > now then return {now, 4, failure} end
end

grant = mint(now, grant)
redis.call('SET', l, ARGV[1] .. grant .. ARGV[3], 'PX', ARGV[2])
listen(w, ARGV[5], tonumber(ARGV[2]))
return {now, 2, grant, failure}
