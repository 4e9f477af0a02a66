-- Return the owner's active sites of this shard with immediate URLs: waiting for a lease, or overtaken in its hand.
-- A      { owner }
-- Result an answer for each site (`site_answer`)
-- Uses   fields sites leases places answers
local answer = {}
for _, name in ipairs(call('SMEMBERS', HURRY)) do
  local row = site_of(name)
  local head = row and row.w and first_from(row, IMMEDIATE)
  local waiting = head and head[1] == IMMEDIATE or row and row.overtaken
  if not waiting then
    call('SREM', HURRY, name)
  elseif row.owner == A[1] then
    answer[#answer + 1] = site_answer(name, row)
  end
end
return answer
