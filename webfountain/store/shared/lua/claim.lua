-- Take names for an owner: those that are its own, nobody's, or have run out.
-- KEYS   one hash: name -> owner, until, note
-- A      { owner, until, at, { name, note }... }
-- Result for each name { owner, until, note, who lost it or false }
-- Atomic: who has a name and until when are one question.
local A = cmsgpack.unpack(ARGV[1])
local owner, till, at = A[1], A[2], A[3]
local answer = {}
for i = 4, #A do
  local name, note = A[i][1], A[i][2]
  local raw = redis.call('HGET', KEYS[1], name)
  local held = raw and cmsgpack.unpack(raw)
  if held and held[1] ~= owner and tonumber(held[2]) > tonumber(at) then
    answer[#answer + 1] = { held[1], held[2], held[3], false }
  else
    redis.call('HSET', KEYS[1], name, cmsgpack.pack({ owner, till, note }))
    local lost = held and held[1] ~= '' and held[1] ~= owner and held[1]
    answer[#answer + 1] = { owner, till, note, lost or false }
  end
end
return answer
