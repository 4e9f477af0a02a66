-- Give the caller sites of this shard that are due, also those whose lease has run out.
-- A      { at most, owner, until, at }
-- Result an answer for each site (`site_answer`)
-- Atomic: a site has one owner, and the new token fences off the old one in the same moment that its leases return.
local most, owner, till, at = unpack(A)
local answer = {}
for _, name in ipairs(call('ZRANGEBYSCORE', DUE, '-inf', keep(at), 'LIMIT', 0, most)) do
  local row = site_of(name)
  if not row.owner then count('active', 1) end
  return_leases(name, row)
  row.due = keep(math.min(time_of(row.due), at))
  row.owner, row.token, row.till = owner, next_number('tokens'), keep(till)
  row.fresh, row.hurried, row.overtaken, row.out = nil, nil, nil, 0
  touch(name)
  schedule(name, row)
  if row.imm > 0 then call('SADD', HURRY, name) end
  answer[#answer + 1] = site_answer(name, row)
end
return finish(answer)
