-- Return the next never-crawled URLs of a site to which a ranking was not yet applied.
-- A      { site, token, epoch, at most }
-- Result false if the site lease is lost, 1 if the site has that epoch already, else { { lane, order, key, value }... }
-- `regrade_move` checks again what it moves, so the two need not be one step.
-- Uses   fields counts sites leases places pages ranks finish
local name, token, epoch, most = unpack(A)
local row = holds(name, token)
if not row then return finish(false) end
if row.epoch == epoch then return 1 end
local lane, order = FIRST_CLASS, -INF
if row.reg and row.reg[1] == epoch then lane, order = row.reg[2], row.reg[3] end
local answer = {}
walk(row, lane, order, function(its_lane, its_order, key)
  if its_lane > LAST_CLASS or #answer >= most then return true end
  answer[#answer + 1] = { its_lane, text(its_order), key, fetch(PAGES, field(row, key)) }
  return false
end)
return answer
