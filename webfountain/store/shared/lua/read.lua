-- What stands in a shard: sites, pages, heads of lanes.
-- A      { "sites", name... } | { "after", name, n } | { "page", site, key... } | { "places", site, lane, order, key, n }
--        | { "heads", site }
-- Result answers of sites or false; values or false; { lane, order, key, value, lease or 0 }...; { lane, order }...
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
elseif what == 'page' then
  local row = site_of(A[2])
  for i = 3, #A do answer[i - 2] = row and call('HGET', PAGES, field(row, A[i])) end
elseif what == 'places' then
  local row = site_of(A[2])
  if row and row.w then
    walk(row, A[3], A[4], function(lane, order, key)
      if #answer >= A[6] then return true end
      answer[#answer + 1] = { lane, text(order), key, call('HGET', PAGES, field(row, key)) }
      return false
    end, A[5])
  end
else
  local row = site_of(A[2])
  local lane = FIRST_LANE
  while row and row.w and lane <= LAST_LANE do
    local head = first_from(row, lane)
    if not head or head[1] > LAST_LANE then break end
    answer[#answer + 1] = { head[1] - FIRST_LANE, text(head[2]) }
    lane = head[1] + 1
  end
end
return answer
