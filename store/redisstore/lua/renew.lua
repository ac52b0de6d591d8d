-- KEYS: l, w. ARGV: token and grant, ttl ms, inbox. Returns µs, then 1 renewed | 0 lost.
local l, w = KEYS[1], KEYS[2]
local now = time()
if redis.call('GETRANGE', l, 0, 31) ~= ARGV[1] then return {now, 0} end
redis.call('PEXPIRE', l, ARGV[2])
listen(w, ARGV[3], tonumber(ARGV[2]))
return {now, 1}
