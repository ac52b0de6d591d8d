-- KEYS: l, w, q, p, f. ARGV: token and grant. Returns µs, then 1 released | 0 lost.
local l, w, q, p, f = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('GETRANGE', l, 0, 31) ~= ARGV[1] then return {time(), 0} end
finish(l, w, q, p, f, string.sub(ARGV[1], 17))
return {time(), 1}
