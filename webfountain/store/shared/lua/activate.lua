-- Give the caller sites of this shard that are due, or those that it names, also such whose lease has run out.
-- A      { at most, owner, until, at, site... }
-- Result an answer for each site: who lost it or false, and `site_answer`
-- Atomic: a site has one owner, and the new token fences off the old one in the same moment that its leases return.
-- For a lease's time after an era began a site may be somebody's who took it in a lost life and knows of no loss. Not so
-- where it was taken or given up in the present era (`row.era`).
-- Uses   fields counts sites leases places tree pages queues answers ranks finish era
local most, owner, till, at = unpack(A, 1, 4)
local present, began = era()
local unsure = began and call('TIME')[1] - began <= till - at + 1 -- it began in the middle of a second

local names, answer = {}, {}
for i = 5, #A do
  local row = site_of(A[i])
  if row and (not row.owner or available(A[i], row) <= at) then names[#names + 1] = A[i] end
end
if most > 0 then names = call('ZRANGEBYSCORE', DUE, '-inf', keep(at), 'LIMIT', 0, most) end
for _, name in ipairs(names) do
  local row = site_of(name)
  local lost = row.owner or row.had or false
  if unsure and row.era ~= present then lost = 'a lost life' end
  row.era, row.had = unsure and present or nil, nil
  if not row.owner then count('active', 1) end
  return_leases(name, row)
  row.due = keep(math.min(time_of(row.due), at))
  row.owner, row.token = owner, unique_number('tokens')
  row.fresh, row.hurried, row.overtaken = nil, nil, nil
  touch(name)
  call('ZADD', DUE, keep(till), name)
  if row.imm > 0 then call('SADD', HURRY, name) end
  local one = site_answer(name, row)
  table.insert(one, 1, lost)
  answer[#answer + 1] = one
end
return finish(answer)
