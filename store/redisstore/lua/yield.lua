-- KEYS: l, w. ARGV: token and grant, cool-down ms, memory ms (0: keep nothing), data, own inbox (not told). Returns µs, then 1 ended | 0 lost.
local l, w = KEYS[1], KEYS[2]
local id, cool, data = ARGV[1], tonumber(ARGV[2]), ARGV[4]
local now = time()

if redis.call('GETRANGE', l, 0, 31) ~= id then return {now, 0} end

local grant = string.sub(id, 17)
local kept = ARGV[3] ~= '0'
  and not failed(redis.pcall('SET', l, NOBODY .. grant .. digits(now + cool * 1000) .. data, 'PX', ARGV[3]))
if not kept then redis.call('DEL', l) end -- out of memory, for one
wake(w, ARGV[5], message('y', grant, w, small(digits(cool * 1000) .. data, 16)))
return {now, 1}
