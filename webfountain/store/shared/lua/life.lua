-- Begin a new life of the store: replace its description if it is still the one that the caller has read.
-- KEYS   the store's description
-- A      { description as it was read, new description }
-- Result nothing
-- Atomic: if many processes detect a loss, one of them names the new life.
local A = cmsgpack.unpack(ARGV[1])
if redis.call('GET', KEYS[1]) == A[1] then redis.call('SET', KEYS[1], A[2]) end
return false
