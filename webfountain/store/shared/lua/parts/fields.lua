-- Fields of hashes. Each field is read once and written once: `finish` writes all fields of a hash with one command.
-- Until then, what a step wrote is only in these tables, so a step that fails has written nothing.

local known, written = {}, {}

local AT_ONCE = 1000 -- most arguments of one command, because Lua's stack is bounded

-- Return the value of a field, false if there is none.
local function fetch(hash, name)
  local of = known[hash]
  if not of then
    of = {}
    known[hash] = of
  end
  local value = of[name]
  if value == nil then
    value = call('HGET', hash, name)
    of[name] = value
  end
  return value
end

-- Read many fields with one command, before they are fetched one by one.
local function fetch_all(hash, names)
  if #names < 2 then return end
  local of = known[hash] or {}
  known[hash] = of
  for from = 1, #names, AT_ONCE do
    local to = math.min(from + AT_ONCE - 1, #names)
    for i, value in ipairs(call('HMGET', hash, unpack(names, from, to))) do
      if of[names[from + i - 1]] == nil then of[names[from + i - 1]] = value end
    end
  end
end

-- Set the value of a field; false deletes the field.
local function write(hash, name, value)
  if not known[hash] then known[hash] = {} end
  if not written[hash] then written[hash] = {} end
  known[hash][name] = value
  written[hash][name] = true
end

local function write_out(hash, names)
  local of, only = known[hash], next(names)
  if not next(names, only) then
    if of[only] then call('HSET', hash, only, of[only]) else call('HDEL', hash, only) end
    return
  end
  local sent, gone = {}, {}
  for name in pairs(names) do
    local value = of[name]
    if value then
      sent[#sent + 1] = name
      sent[#sent + 1] = value
      if #sent == AT_ONCE then
        call('HSET', hash, unpack(sent))
        sent = {}
      end
    else
      gone[#gone + 1] = name
    end
  end
  if #sent > 0 then call('HSET', hash, unpack(sent)) end
  for from = 1, #gone, AT_ONCE do
    call('HDEL', hash, unpack(gone, from, math.min(from + AT_ONCE - 1, #gone)))
  end
end
