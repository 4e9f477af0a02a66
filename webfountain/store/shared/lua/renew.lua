-- Extend site leases that no other process has taken over, even expired ones.
-- A      { until, { site, token }... }
-- Result for each site 1 if the lease was extended, else 0
-- Atomic: a lease is checked and extended in one step.
-- Uses   fields counts sites leases ranks finish
local names, sent, answer = {}, {}, {}
for i = 2, #A do names[i - 1] = A[i][1] end
fetch_all(SITES, names)
for i = 2, #A do
  local name, token = unpack(A[i])
  local row = holds(name, token)
  if row then
    sent[#sent + 1] = keep(A[1])
    sent[#sent + 1] = name
  end
  if #sent >= AT_ONCE or i == #A and #sent > 0 then
    call('ZADD', DUE, unpack(sent))
    sent = {}
  end
  answer[i - 1] = row and 1 or 0
end
return finish(answer)
