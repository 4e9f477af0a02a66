-- Let sites stand in the orders, in a store that an older version wrote.
-- A      { { site, time of its newest entry in the change log or 0 }... }
-- Result how many there were
-- Atomic: a site that changes meanwhile is ranked by what it is then.
-- Uses   fields counts sites leases ranks finish
local many = 0
for _, one in ipairs(A) do
  local row = site_of(one[1])
  if row then
    if one[2] > 0 then row.chg = math.max(row.chg or 0, one[2]) end
    row.rk = nil -- all members are made anew
    touch(one[1])
    many = many + 1
  end
end
return finish(many)
