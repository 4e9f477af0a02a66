-- Let claims end sooner after a run whose clock was ahead: those of ended processes at once, open times by as much.
-- KEYS   one hash: name -> owner, until, note
-- A      { at, seconds ahead, the latest end of a claim that a right clock made }
-- Result how many
-- Atomic: another may claim a name meanwhile.
local A = cmsgpack.unpack(ARGV[1])
local at, ahead, latest = tonumber(A[1]), tonumber(A[2]), tonumber(A[3])
local all, sent = redis.call('HGETALL', KEYS[1]), 0
for i = 1, #all, 2 do
  local owner, till, note = unpack(cmsgpack.unpack(all[i + 1]))
  local ends = tonumber(till)
  if ends > latest and ends < math.huge then
    ends = owner == '' and math.max(at, ends - ahead) or at
    redis.call('HSET', KEYS[1], all[i], cmsgpack.pack({ owner, string.format('%.17g', ends), note }))
    sent = sent + 1
  end
end
return sent
