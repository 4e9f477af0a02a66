-- Read the shard's change log.
-- A      { "after", sequence, n } | { "before", time } | { "time", sequence } | { "naming", sequence, n, bytes }
-- Result { number of the entry before the first one returned, whether anything in the shard was forgotten, entry... } |
--        number of the newest entry older than the time, or of the last dropped entry |
--        time of that entry (also of the last dropped entry), or false |
--        { number of the last entry examined, { sequence, entry }... }: those of the next n entries that contain the
--        bytes
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
