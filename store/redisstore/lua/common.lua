-- Put in front of every script. Words: l is the key of a lease or failure, w that of the inboxes.
-- A lease is token (16 bytes), grant (16 digits), note; a failure is 16 zero bytes, grant, cool-until (16 digits, µs), data.

local NOBODY = string.rep('\0', 16)
local NO_GRANT = string.rep('0', 16)

-- time returns the server's time in µs. Exact: below 2^53 until the year 2255.
local function time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local function digits(n)
  return string.format('%016.0f', n)
end

-- number reads what digits wrote, nil if it did not.
local function number(s)
  if s and #s == 16 and string.find(s, '^%d+$') then return tonumber(s) end
end

-- head returns token, grant and ms left of what l holds, nil for nothing and for what we did not write:
-- another form, or a key that never expires.
local function head(l)
  local h = redis.call('GETRANGE', l, 0, 31)
  local left = redis.call('PTTL', l)
  if number(string.sub(h, 17)) and left >= 0 then return string.sub(h, 1, 16), string.sub(h, 17), left end
end

-- lease returns token, grant and ms left of the live lease; nil and the grant of a failure; or nil.
local function lease(l)
  local token, grant, left = head(l)
  if token == NOBODY then return nil, grant end
  return token, grant, left
end

-- mint returns a new grant: the time, or one more than the last if the clock went back. A lease that was
-- deleted leaves no last: its grant could come again only in the same µs of a clock that was set back, and
-- would be mistaken only if the same token claimed again then.
local function mint(now, last)
  local n = number(last)
  if n and n >= now then now = n + 1 end
  return digits(now)
end

local function failed(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

-- listen adds an inbox ('' for none) to those that are told how the lease ends, for as long as it can last.
-- Who cannot be added, the server being out of memory, asks again in time.
local function listen(w, inbox, left)
  if inbox == '' then return end
  redis.pcall('SADD', w, inbox)
  local ms = left + 5000
  if redis.call('PTTL', w) < ms then redis.call('PEXPIRE', w, ms) end
end

-- message is what is published: kind, grant that ended, the key's w (length and name), payload.
local function message(kind, grant, w, payload)
  return kind .. (grant or NO_GRANT) .. string.format('%08d', #w) .. w .. payload
end

-- tell publishes to one inbox, or to the channel of announcements. A user who may not publish is no reason to stop half-way.
local function tell(inbox, msg)
  redis.pcall('PUBLISH', inbox, msg)
end

-- wake tells all inboxes but one, and forgets them.
local function wake(w, except, msg)
  local inboxes = redis.pcall('SMEMBERS', w)
  if failed(inboxes) then inboxes = {} end
  for _, inbox in ipairs(inboxes) do
    if inbox ~= except then tell(inbox, msg) end
  end
  redis.call('DEL', w)
end

-- An entry is version (16 bytes), flags (1 byte, 1: stale), value.
-- version returns that of the entry in v, nil for nothing and for what we did not write.
local function version(v)
  local h = redis.call('GETRANGE', v, 0, 16)
  if #h == 17 and string.byte(h, 17) <= 1 and string.sub(h, 1, 16) ~= NOBODY then return string.sub(h, 1, 16) end
end

-- small returns data if it may travel with a message, else nothing.
local LIMIT = 4096
local function small(data, header)
  if #data - header <= LIMIT then return data end
  return ''
end
