-- End leases with the outcomes of their pages, and store what was learned about sites.
-- A      { outcomes, learned, parts, at }
--        an outcome is { site, token, key, number, page, keeps the copy, row counts, entry of the log or false }
--        a page is { state, lane, order, bucket, last_crawled in ms, due or false, copy or false, body }
--        row counts are { field, increment, ... }; learned is { site, token, bytes }...
--        a part is { site, token, number, bytes or "" }
-- Result { applied, lost }
-- Atomic: record, lane, counts and the end of the lease change together. Otherwise a crash could count a page twice, or
-- leave it in no queue.
-- Uses   fields counts latest sites leases places tree pages queues log ranks finish
local applied, lost = 0, 0

local function settle(name, token, key, number, page, keeps, counted, entry)
  local row = site_of(name)
  if not row or not row.owner or row.token ~= token or lease_number(row, key) ~= number then return false end
  local before = header(fetch(PAGES, field(row, key)))
  local after = {
    state = page[1], lane = page[2], order = page[3], bucket = page[4], crawled_ms = page[5],
    due = page[6] or nil, copy = page[7] or nil, body = page[8],
  }
  if keeps then after.copy = before.copy end
  end_lease(row, key)
  count_page(row, before, -1)
  write(PAGES, field(row, key), value_of(after))
  count_page(row, after, 1)
  enqueue(name, row, after, key)
  for i = 1, #counted, 2 do
    -- Added as doubles, as every process would add them; HINCRBYFLOAT computes with more digits.
    write(ROWS, counted[i], tonumber(fetch(ROWS, counted[i]) or 0) + counted[i + 1])
  end
  note(entry)
  note_change(row, entry)
  touch(name)
  return true
end

local function read_ahead()
  local fields, counters = {}, {}
  for _, outcome in ipairs(A[1]) do
    local row = site_of(outcome[1])
    if row then fields[#fields + 1] = field(row, outcome[3]) end
    for i = 1, #outcome[7], 2 do counters[#counters + 1] = outcome[7][i] end
  end
  fetch_all(PAGES, fields)
  fetch_all(ROWS, counters)
end

if #A[1] > 1 then read_ahead() end
for _, outcome in ipairs(A[1]) do
  if settle(unpack(outcome)) then applied = applied + 1 else lost = lost + 1 end
end
if lost > 0 then count('settle_lost', lost) end
for _, one in ipairs(A[2]) do
  if holds(one[1], one[2]) then write(SITES, one[1] .. '\0l', one[3]) end
end
for _, one in ipairs(A[3]) do
  if holds(one[1], one[2]) then
    -- The numbers of the parts are stored too, so that the parts can be deleted with their site.
    local all = one[1] .. '\0n'
    local kept = fetch(SITES, all)
    local numbers = kept and cmsgpack.unpack(kept) or {}
    local before = #numbers
    for i = before, 1, -1 do
      if numbers[i] == one[3] then table.remove(numbers, i) end
    end
    if one[4] ~= '' then numbers[#numbers + 1] = one[3] end
    if #numbers ~= before or one[4] == '' then
      write(SITES, all, #numbers > 0 and cmsgpack.pack(numbers))
    end
    write(SITES, one[1] .. '\0p' .. one[3], one[4] ~= '' and one[4])
  end
end
note_time(A[4])
return finish({ applied, lost })
