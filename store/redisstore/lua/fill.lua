-- KEYS: v, l, w. ARGV: token and grant, entry, ttl ms, own inbox (not told). Returns µs, then 1 stored | 2 was stored before | 0 lost.
local v, l, w = KEYS[1], KEYS[2], KEYS[3]
local id, entry = ARGV[1], ARGV[2]
local now = time()

if redis.call('GETRANGE', l, 0, 31) ~= id then
  if version(v) == string.sub(id, 1, 16) then return {now, 2} end
  return {now, 0}
end
redis.call('SET', v, entry, 'PX', ARGV[3])
redis.call('DEL', l)
wake(w, ARGV[4], message('f', string.sub(id, 17), w, small(entry, 17)))
return {now, 1}
