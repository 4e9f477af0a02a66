-- End leases with what became of their pages, and keep what was learned of sites.
-- A      { outcomes, learned, rows }; an outcome is { site, token, key, number, page, keeps the copy, row counts, entry of
--        the log or false }, a page
--        { state, lane, order, bucket, last_crawled in ms, due or false, copy or false, body }, row counts are
--        { field, increment, ... }; learned is { site, token, bytes }...
-- Result { applied, lost }
-- Atomic: record, lane, counts and the lease's end belong together, or a crash would count a page twice or strand it.
local applied, lost = 0, 0

local function settle(name, token, key, number, page, keeps, counted, entry)
  local row = site_of(name)
  if not row or not row.owner or row.token ~= token or lease_number(row, key) ~= number then return false end
  local before = header(call('HGET', PAGES, field(row, key)))
  local after = {
    state = page[1], lane = page[2], order = page[3], bucket = page[4], crawled_ms = page[5],
    due = page[6] or nil, copy = page[7] or nil, body = page[8],
  }
  if keeps then after.copy = before.copy end
  end_lease(row, key, number)
  count_page(row, before, -1)
  call('HSET', PAGES, field(row, key), value_of(after))
  count_page(row, after, 1)
  enqueue(name, row, after, key)
  for i = 1, #counted, 2 do
    -- The sum as any process would make it of the same doubles; HINCRBYFLOAT has more digits.
    local sum = tonumber(call('HGET', ROWS, counted[i]) or 0) + counted[i + 1]
    call('HSET', ROWS, counted[i], text(sum))
  end
  note(entry)
  touch(name)
  return true
end

for _, outcome in ipairs(A[1]) do
  if settle(unpack(outcome)) then applied = applied + 1 else lost = lost + 1 end
end
count('settle_lost', lost)
for _, one in ipairs(A[2]) do
  if holds(one[1], one[2]) then call('HSET', SITES, one[1] .. '\0l', one[3]) end
end
return finish({ applied, lost })
