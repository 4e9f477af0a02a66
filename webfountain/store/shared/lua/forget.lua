-- Remove pages of a site permanently, or the site itself when none of its pages is left.
-- A      { site, whole, { key, value as it was read or false, entry of the log or false }... }; with `whole`, the site
--        is barred and the pages are some of its pages; otherwise each page is barred
-- Result { removed, to be read again, whether nothing of the site is left }
-- Atomic for the given pages, so the removal of each page is reported once. A page that changed after it was read is
-- counted in the result. A large site takes several calls, and the first call bars it.
-- Uses   fields counts sites leases places tree pages queues log ranks finish
local name, whole = A[1], A[2]
local row = site_of(name)
local removed, again = 0, 0
if whole then call('SADD', BARRED, name) end
for i = 3, #A do
  local key, value, entry = unpack(A[i])
  if not whole then call('SADD', BARRED, name .. '\0' .. key) end
  if (row and fetch(PAGES, field(row, key)) or false) ~= value then
    again = again + 1
  elseif value then
    local one = header(value)
    if lease_number(row, key) then end_lease(row, key) else dequeue(row, one, key) end
    count_page(row, one, -1)
    write(PAGES, field(row, key), false)
    note(entry)
    note_change(row, entry)
    touch(name)
    removed = removed + 1
  end
end
local left = row and row.n[1] + row.n[2] + row.n[3] + row.n[4] + row.n[5] + row.n[6] or 0
if whole and row and left == 0 then
  if row.owner then count('active', -1) end
  count('sites', -1)
  local numbers = call('HGET', SITES, name .. '\0n')
  for _, number in ipairs(numbers and cmsgpack.unpack(numbers) or {}) do
    call('HDEL', SITES, name .. '\0p' .. number)
  end
  call('HDEL', SITES, name, name .. '\0s', name .. '\0l', name .. '\0n')
  call('ZREM', DUE, name)
  call('ZREM', NAMES, name)
  unlist_site(name, row)
  call('SREM', HURRY, name)
  rows[name], changed[name] = false, nil
end
return finish({ removed, again, left == 0 and 1 or 0 })
