-- Lease sites of this shard to the caller: the sites that are due, or those of the named sites that are free or whose
-- lease has expired.
-- A      { at most, owner, until, at, site... }
-- Result for each site: the owner that lost it or false, then `site_answer`
-- Atomic: a site has one owner, and its URL leases return at the moment at which the new token replaces the old one.
-- After an era began, for as long as a lease lasts, a process may still use a site that it took in a lost life, because
-- it has not noticed the loss. This cannot be if the site was taken or given up in the current era (`row.era`).
-- Uses   fields counts sites leases places tree pages queues answers ranks finish era
local most, owner, till, at = unpack(A, 1, 4)
local present, began = era()
local unsure = began and call('TIME')[1] - began <= till - at + 1 -- + 1: it began in the middle of a second

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
