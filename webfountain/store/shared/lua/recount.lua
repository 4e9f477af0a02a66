-- Count a site and its pages again, in its row and in the new counts of its shard.
-- A      { site }; the sites of a shard come one after another
-- Result 0
-- Atomic: if the answer is lost, the call is sent again, and counts nothing then. `last` is the site counted last.
-- Uses   fields counts sites leases places pages ranks finish
local row = site_of(A[1])
if row and fetch(COUNTS, 'last') ~= A[1] then
  write(COUNTS, 'last', A[1])
  row.n, row.imm = { 0, 0, 0, 0, 0, 0 }, 0
  if row.w then
    walk(row, 0, -INF, function(lane, _, key)
      local value = call('HGET', PAGES, field(row, key))
      if not value then return false end
      local one = header(value)
      count_page(row, one, 1)
      if lane == LEASED then count('leased', 1) elseif one.lane == IMMEDIATE then count('immediate', 1) end
      return false
    end)
  end
  count('sites', 1)
  if row.owner then count('active', 1) end
  touch(A[1])
end
return finish(0)
