-- KEYS: l, w, q, p, f. ARGV: token. Returns µs.
local l, w, q, p, f = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
redis.call('LREM', q, 0, ARGV[1])
redis.call('HDEL', p, ARGV[1])
local token, grant = lease(l)
if token == ARGV[1] then finish(l, w, q, p, f, grant) end
return {time()}
