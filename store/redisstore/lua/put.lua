-- KEYS: v, l, w. ARGV: entry, ttl ms, channel of announcements, key. Returns µs.
local v, l, w = KEYS[1], KEYS[2], KEYS[3]
local token, grant = lease(l)
redis.call('SET', v, ARGV[1], 'PX', ARGV[2])
redis.call('DEL', l)
wake(w, '', message('d', token and grant or nil, w, ''))
tell(ARGV[3], ARGV[4])
return {time()}
