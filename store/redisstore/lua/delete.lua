-- KEYS: v, l, w. ARGV: channel of announcements, key. Returns µs.
local v, l, w = KEYS[1], KEYS[2], KEYS[3]
local ok, token, grant = pcall(lease, l) -- a key of another type is removed too
redis.call('DEL', v, l)
wake(w, '', message('d', ok and token and grant or nil, w, ''))
tell(ARGV[1], ARGV[2])
return {time()}
