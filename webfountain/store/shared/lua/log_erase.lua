-- Put other words in the place of entries of the change log that are still kept.
-- A      { sequence, entry }...
-- Result how many were
-- Atomic, or an entry that was dropped since it was read would come back.
-- Uses   base
local replaced = 0
for _, one in ipairs(A) do
  if call('HEXISTS', LOG, one[1]) == 1 then
    call('HSET', LOG, one[1], one[2])
    replaced = replaced + 1
  end
end
return replaced
