-- Drop the oldest entries of the shard's change log: those before a time, and those up to a number.
-- A      { before, up to, at most }
-- Result { number dropped now, number dropped in all, number of the newest entry }
-- Atomic with the count of dropped entries, which shows whether a cursor is too old.
-- Uses   fields counts sites leases log ranks finish
local before, up_to, most = unpack(A)
local dropped, last = log_bounds()
local went, newest = 0, nil
while went < most and dropped + went < last do
  local number = dropped + went + 1
  local at = logged_at(call('HGET', LOG, number))
  if number > up_to and at >= before then break end
  newest = at
  write(LOG, number, false)
  went = went + 1
end
count('log_dropped', went)
-- A cursor after the last dropped entry contains a hash of that entry's time.
if newest then call('HSET', LIFE, 'trimmed', text(newest)) end
return finish({ went, dropped + went, last })
