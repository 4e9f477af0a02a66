-- Read sites and pages of a shard.
-- A      { "sites", name... } | { "after", name, n } | { "page", site, key... } | { "part", site, number } |
--        { "places", site, lane, order, key, n }
-- Result answers of sites, or false; values, or false; a part or false; { lane, order, key, value, lease or 0 }...
-- Uses   fields sites leases places pages answers
local what, answer = A[1], {}
if what == 'sites' then
  for i = 2, #A do
    local row = site_of(A[i])
    answer[i - 1] = row and site_answer(A[i], row)
  end
elseif what == 'after' then
  local from = A[2] == '' and '-' or '(' .. A[2]
  for i, name in ipairs(call('ZRANGEBYLEX', NAMES, from, '+', 'LIMIT', 0, A[3])) do
    answer[i] = site_answer(name, site_of(name))
  end
elseif what == 'part' then
  answer = call('HGET', SITES, A[2] .. '\0p' .. A[3])
elseif what == 'page' then
  local row = site_of(A[2])
  for i = 3, #A do answer[i - 2] = row and call('HGET', PAGES, field(row, A[i])) end
else
  local row = site_of(A[2])
  if row and row.w then
    walk(row, A[3], A[4], function(lane, order, key)
      if #answer >= A[6] then return true end
      answer[#answer + 1] = { lane, text(order), key, call('HGET', PAGES, field(row, key)) }
      return false
    end, A[5])
  end
end
return answer
