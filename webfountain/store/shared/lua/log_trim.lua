-- Drop the oldest entries of the shard's change log: those of before a time, and those up to a number.
-- A      { before, up to, at most }
-- Result { how many went, how many went ever, number of the newest }
-- Atomic with the count of what went, by which a cursor that is too old is known.
local before, up_to, most = unpack(A)
local dropped, last = log_bounds()
local went = 0
while went < most and dropped + went < last do
  local number = dropped + went + 1
  if number > up_to and logged_at(call('HGET', LOG, number)) >= before then break end
  write(LOG, number, false)
  went = went + 1
end
count('log_dropped', went)
return finish({ went, dropped + went, last })
