-- Prolong site leases that nobody took over, also those that ran out.
-- A      { until, { site, token }... }
-- Result 1 for each that is held, else 0
-- Atomic: whether it is held and its new deadline are one question.
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
