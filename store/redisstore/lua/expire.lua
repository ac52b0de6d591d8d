-- KEYS: v, l, w. ARGV: channel of announcements, key. Returns µs.
local v, l, w = KEYS[1], KEYS[2], KEYS[3]
local token, grant = lease(l)
if grant then redis.call('DEL', l) end -- a failure too
-- Out of memory even for one byte in place: an entry that is gone is stale too.
if version(v) and failed(redis.pcall('SETRANGE', v, 16, '\1')) then redis.call('DEL', v) end
if token then wake(w, '', message('d', grant, w, '')) end
tell(ARGV[1], ARGV[2])
return {time()}
