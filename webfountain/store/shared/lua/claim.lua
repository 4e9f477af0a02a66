-- Claim names for an owner: names that it already has, that have no owner, or whose claim has expired.
-- KEYS   one hash: name -> owner, until, note
-- A      { owner, until, at, { name, note }... }
-- Result for each name { owner, until, note, the previous owner if its claim expired, else false }
-- Atomic: a claim is checked and replaced in one step.
local A = cmsgpack.unpack(ARGV[1])
local owner, till, at = A[1], A[2], A[3]
local AT_ONCE = 1000 -- most arguments of one command, because Lua's stack is bounded
local answer = {}
for from = 4, #A, AT_ONCE do
  local to = math.min(from + AT_ONCE - 1, #A)
  local names, sent = {}, {}
  for i = from, to do names[i - from + 1] = A[i][1] end
  for i, raw in ipairs(redis.call('HMGET', KEYS[1], unpack(names))) do
    local note = A[from + i - 1][2]
    local held = raw and cmsgpack.unpack(raw)
    if held and held[1] ~= owner and tonumber(held[2]) > tonumber(at) then
      answer[#answer + 1] = { held[1], held[2], held[3], false }
    else
      sent[#sent + 1] = names[i]
      sent[#sent + 1] = cmsgpack.pack({ owner, till, note })
      local lost = held and held[1] ~= '' and held[1] ~= owner and held[1]
      answer[#answer + 1] = { owner, till, note, lost or false }
    end
  end
  if #sent > 0 then redis.call('HSET', KEYS[1], unpack(sent)) end
end
return answer
