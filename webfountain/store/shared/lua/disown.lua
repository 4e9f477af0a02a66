-- End site leases of a lost life: their URL leases return, and the sites are due as before.
-- A      { site, token, owner, whether no other process can have the site }...
-- Result number of sites that no process has now
-- Atomic: the old token is valid until the URL leases have returned. The owner stays stored, even if the site has no
-- owner now, or has the same owner by an earlier lease. So the process that takes the site next learns that the owner
-- had it to the end of that life and has given it up, and waits for the site's delay. If another process may have the
-- site too, the row keeps its old era, and the process that takes the site waits longer.
-- Uses   fields counts sites leases places tree pages queues ranks finish era
local present, many = era(), 0
for _, one in ipairs(A) do
  local name, token, owner, alone = unpack(one)
  local row = site_of(name)
  if row and not row.owner and alone and row.era ~= present then
    row.era, row.had = present, owner
    touch(name)
    many = many + 1
  elseif row and row.owner and (row.token == token or row.owner == owner) then
    return_leases(name, row)
    row.token, row.era = 0, alone and present or row.era
    row.fresh, row.hurried, row.overtaken = nil, nil, nil
    touch(name)
    schedule(name, row)
    many = many + 1
  end
end
return finish(many)
