-- Counts of a shard. What a step adds to a count is written once.

local added, given = {}, {} -- name -> number to add; name -> the last number given

local function count(name, many)
  added[name] = (added[name] or 0) + many
end

-- Return a number that was not given before, `least` or more.
local function next_number(name, least)
  local number = (given[name] or tonumber(call('HGET', COUNTS, name) or 0)) + 1
  if least and number < least then number = least end
  given[name] = number
  return number
end

-- Raise the last number given to this one, if it is smaller.
local function give_at_least(name, number)
  local last = given[name] or tonumber(call('HGET', COUNTS, name) or 0)
  if last < number then given[name] = number end
end

-- Return a number that is never given twice. The next number is not enough: a server that was set back gives it again.
local function unique_number(name)
  if given[name] then return next_number(name) end
  local clock = call('TIME')
  return next_number(name, clock[1] * 1000000 + clock[2])
end

local sums = { [BUCKETS] = {}, [COPIES] = {} }
local LARGE = 2 ^ 52

-- Do the same as `count` in another hash, for numbers whose sum may be too large for a double.
local function add(hash, name, many)
  local sum = (sums[hash][name] or 0) + many
  if sum > LARGE then
    call('HINCRBY', hash, name, sum)
    sum = 0
  end
  sums[hash][name] = sum
end

local function write_counts()
  local names, sent = {}, {}
  for name, many in pairs(added) do
    if many ~= 0 then names[#names + 1] = name end
  end
  if #names > 0 then
    for i, before in ipairs(call('HMGET', COUNTS, unpack(names))) do
      sent[#sent + 1] = names[i]
      sent[#sent + 1] = tonumber(before or 0) + added[names[i]]
    end
  end
  for name, number in pairs(given) do
    sent[#sent + 1] = name
    sent[#sent + 1] = number
  end
  if #sent > 0 then call('HSET', COUNTS, unpack(sent)) end
  for name, many in pairs(sums[BUCKETS]) do
    if many ~= 0 then call('HINCRBY', BUCKETS, name, many) end
  end
  for name, many in pairs(sums[COPIES]) do
    if many ~= 0 and call('HINCRBY', COPIES, name, many) == 0 then call('HDEL', COPIES, name) end
  end
end
