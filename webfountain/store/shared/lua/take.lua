-- Take entries of a list, a set or a sorted set that any client fills. Each entry goes to one process, which reports
-- when it is done.
-- KEYS   the list; a sorted set beside it: taken entry -> the time until which its process has it
-- ARGV   "list" | "set" | "zset", at most, until, at
-- Result { name, entry }...: first the entries that were taken and not done in time, then new ones
-- Atomic: an entry is always in the list or taken, so it is not lost if a process dies.
local form, most, till, at = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local answer = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', at, 'LIMIT', 0, most)) do
  redis.call('ZADD', KEYS[2], till, name)
  answer[#answer + 1] = { name, string.sub(name, string.find(name, '|', 1, true) + 1) }
end
local left = most - #answer
if left <= 0 then return answer end
local found = {}
if form == 'set' then
  found = redis.call('SPOP', KEYS[1], left)
elseif form == 'zset' then
  for i, each in ipairs(redis.call('ZPOPMAX', KEYS[1], left)) do
    if type(each) == 'table' then found[#found + 1] = each[1] elseif i % 2 == 1 then found[#found + 1] = each end
  end
else
  found = redis.call('LPOP', KEYS[1], left) or {}
end
local now = redis.call('TIME')
for i, entry in ipairs(found) do
  local name = now[1] .. '.' .. now[2] .. '.' .. i .. '|' .. entry
  redis.call('ZADD', KEYS[2], till, name)
  answer[#answer + 1] = { name, entry }
end
return answer
