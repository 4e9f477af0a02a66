-- Begin a new life of the store: put another description of it in the place of the one that the caller has read.
-- KEYS   what the store says of itself
-- A      { description as it was read, new description }
-- Result nothing
-- Atomic: of many processes that notice a loss one names the new life.
local A = cmsgpack.unpack(ARGV[1])
if redis.call('GET', KEYS[1]) == A[1] then redis.call('SET', KEYS[1], A[2]) end
return false
