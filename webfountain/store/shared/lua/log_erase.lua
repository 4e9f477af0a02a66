-- Replace entries of the change log that are still kept.
-- A      { sequence, entry }...
-- Result number of replaced entries
-- Atomic: otherwise an entry that was dropped after it was read would come back.
-- Uses   base
local replaced = 0
for _, one in ipairs(A) do
  if call('HEXISTS', LOG, one[1]) == 1 then
    call('HSET', LOG, one[1], one[2])
    replaced = replaced + 1
  end
end
return replaced
