-- Prolong site leases that nobody took over, also those that ran out.
-- A      { until, { site, token }... }
-- Result 1 for each that is held, else 0
-- Atomic: whether it is held and its new deadline are one question.
local answer = {}
for i = 2, #A do
  local name, token = unpack(A[i])
  local row = holds(name, token)
  if row then call('ZADD', DUE, keep(A[1]), name) end
  answer[i - 1] = row and 1 or 0
end
return finish(answer)
