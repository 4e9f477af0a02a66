-- Take sites off their owner's active list.
-- A      { at, { site, token, due, state }... }
-- Result how many of the sites were on the list under the given lease
-- Atomic: the URL leases return, the state is stored and the site is due again. Otherwise another ant could take a site
-- that is only partly parked.
-- Uses   fields counts latest sites leases places tree pages queues ranks finish
local at, many = A[1], 0
for i = 2, #A do
  local name, token, due, state = unpack(A[i])
  local row = holds(name, token)
  if row then
    local returned = return_leases(name, row) > 0 and at or INF
    row.due = row.hurried and 0 or keep(math.min(due, time_of(row.fresh), returned))
    row.owner, row.token = nil, nil
    row.fresh, row.hurried, row.overtaken = nil, nil, nil
    write(SITES, name .. '\0s', state)
    count('active', -1)
    touch(name)
    schedule(name, row)
    many = many + 1
  end
end
note_time(at)
return finish(many)
