-- Shorten claims after a run whose clock was ahead: claims of ended processes end now, the open times of addresses end
-- earlier by the same difference.
-- KEYS   one hash: name -> owner, until, note
-- A      { at, seconds ahead, the latest end of a claim made by a correct clock }
-- Result number of shortened claims
-- Atomic: another process may claim a name meanwhile.
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
