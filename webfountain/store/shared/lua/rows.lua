-- Return sites of a shard in order of name, each with its next pages, up to a total number of pages and sites.
-- A      { name of the last site returned or "", whether it has more pages, lane, order, key, at most }
-- Result { { site, its row (cmsgpack), its state or false, what was learned or false, the numbers of its parts
--        (cmsgpack) or false, { lane, order, key, value }... }... }; a site that has more pages comes first, with these
--        pages. If there are fewer than `at most` in all, they are the last ones.
-- It only reads, and is called with EVALSHA_RO, which works even while writing is paused.
-- Uses   fields leases places pages
local name, goes_on, lane, order, key, most = unpack(A)
local answer, left = {}, most

local function take(site, from_lane, from_order, from_key)
  local raw = call('HGET', SITES, site)
  local row = raw and cmsgpack.unpack(raw)
  local known = call('HMGET', SITES, site .. '\0s', site .. '\0l', site .. '\0n')
  local one = { site, raw, known[1], known[2], known[3] }
  left = left - 1
  if row and row.w then
    walk(row, from_lane, from_order, function(its_lane, its_order, its_key)
      if left <= 0 then return true end
      one[#one + 1] = { its_lane, text(its_order), its_key, call('HGET', PAGES, field(row, its_key)) }
      left = left - 1
      return false
    end, from_key)
  end
  answer[#answer + 1] = one
end

if goes_on then take(name, lane, order, key) end
local from = name
while left > 0 do
  local names = call('ZRANGEBYLEX', NAMES, from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, math.min(left, 100))
  for _, site in ipairs(names) do
    if left > 0 then
      take(site, 0, -INF, '')
      from = site
    end
  end
  if #names == 0 then break end
end
return answer
