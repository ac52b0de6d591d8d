-- KEYS: l, w, q, p, f. ARGV: none. Returns µs, then the lease and its ms left if there was one.
local l, w, q, p, f = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, grant, left = lease(l)
if not token then return {time()} end
local record = redis.call('GET', l)
wake(w, '', message('d', grant, w, '')) -- the holder too, and before who is next
finish(l, w, q, p, f, grant)
return {time(), record, left}
