-- End site leases of a lost life: their URL leases return, and the sites are due as they were.
-- A      { site, token, owner, whether nobody else can have had it }...
-- Result how many sites nobody has now
-- Atomic: the old token holds until its leases have returned. The owner stays written down, also where the site is nobody's
-- again or its owner's by an earlier lease: who takes the site next is told that somebody had it to the end of that life
-- and has given it up, and waits out its delay. Where another may have it, too, it is left as it is, and who takes it waits
-- longer.
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
