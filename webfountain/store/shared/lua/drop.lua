-- Give up names. No process may claim a name before the time given for it.
-- KEYS   as claim.lua
-- A      { owner, at, { name, until }... }
-- Result how many of the names belonged to the owner
-- Atomic: another process may have taken a name meanwhile.
local A = cmsgpack.unpack(ARGV[1])
local owner, at = A[1], A[2]
local many = 0
for i = 3, #A do
  local name, till = A[i][1], A[i][2]
  local raw = redis.call('HGET', KEYS[1], name)
  if raw and cmsgpack.unpack(raw)[1] == owner then
    if tonumber(till) > tonumber(at) then
      redis.call('HSET', KEYS[1], name, cmsgpack.pack({ '', till, '' }))
    else
      redis.call('HDEL', KEYS[1], name)
    end
    many = many + 1
  end
end
return many
