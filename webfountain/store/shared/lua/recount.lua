-- Count a site and its pages again, in its row and in the counts of the shard, which were emptied before.
-- A      { site }
-- Result 0
-- Atomic: the row and the counts of the shard always agree.
-- Uses   fields counts sites leases places pages ranks finish
local row = site_of(A[1])
if row then
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
