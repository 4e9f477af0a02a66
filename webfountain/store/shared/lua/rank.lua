-- Add sites to the orders, in a store that an older version wrote.
-- A      { { site, time of its newest entry in the change log or 0 }... }
-- Result number of added sites
-- Atomic: a site that changes meanwhile is ranked by its current values.
-- Uses   fields counts sites leases ranks finish
local many = 0
for _, one in ipairs(A) do
  local row = site_of(one[1])
  if row then
    if one[2] > 0 then row.chg = math.max(row.chg or 0, one[2]) end
    row.rk = nil -- all members are added again
    touch(one[1])
    many = many + 1
  end
end
return finish(many)
