-- What the shard's change log holds.
-- A      { "after", sequence, n } | { "before", time } | { "time", sequence } | { "naming", sequence, n, bytes }
-- Result { number of the entry behind which they lie, whether something of the shard was forgotten, entry... } |
--        the newest entry that is older, or the last that went |
--        the time of that entry, also of the last that went, or false |
--        { how far it looked, { sequence, entry }... }: of the next n those that hold the bytes
-- Uses   log
local dropped, last = log_bounds()
local what, n = A[1], A[3]

local function entries_after(sequence)
  local names = {}
  for number = sequence + 1, math.min(sequence + n, last) do names[#names + 1] = number end
  return #names > 0 and call('HMGET', LOG, unpack(names)) or {}
end

if what == 'time' then
  local entry = call('HGET', LOG, A[2])
  if entry then return text(logged_at(entry)) end
  return A[2] == dropped and call('HGET', LIFE, 'trimmed')
end
if what == 'before' then
  local low, high = dropped, last
  while low < high do
    local middle = floor((low + high + 1) / 2)
    if logged_at(call('HGET', LOG, middle)) < A[2] then low = middle else high = middle - 1 end
  end
  return low
end
local from = math.max(A[2], dropped)
local found = entries_after(from)
if what == 'after' then
  table.insert(found, 1, call('EXISTS', BARRED))
  table.insert(found, 1, from)
  return found
end
local answer = { from + #found }
for i, entry in ipairs(found) do
  if entry:find(A[4], 1, true) then answer[#answer + 1] = { from + i, entry } end
end
return answer
