-- Replace values of a site's pages, with their places in its queues and their counts, or replace the times of the site.
-- Store the new position of the pass.
-- A      { site, position before, position after, { first seen, due, state, learned, last change } or false,
--        { key, value as it was read, new value }... }
-- Result false if another process has continued the pass meanwhile, else the keys whose values changed after they were
--        read
-- Atomic: a second change would give wrong values, so the position of the pass is written with the first.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local name, before, after, times = unpack(A, 1, 4)
if (fetch(SITES, '\0units') or '') ~= before then return finish(false) end
local row, others = site_of(name), {}
for i = 5, #A do
  local key, value, new = unpack(A[i])
  if not row or fetch(PAGES, field(row, key)) ~= value then
    others[#others + 1] = key
  else
    local was, now = header(value), header(new)
    local stands = not lease_number(row, key)
    count_page(row, was, -1)
    if stands then dequeue(row, was, key) end
    write(PAGES, field(row, key), new)
    if stands then enqueue(name, row, now, key) end
    count_page(row, now, 1)
  end
end
if row and times then
  local numbers = fetch(SITES, name .. '\0n')
  for _, number in ipairs(numbers and cmsgpack.unpack(numbers) or {}) do write(SITES, name .. '\0p' .. number, false) end
  write(SITES, name .. '\0n', false)
  write(SITES, name .. '\0s', times[3])
  write(SITES, name .. '\0l', times[4] ~= '' and times[4])
  row.first, row.due, row.chg = times[1], keep(times[2]), times[5]
  -- Even if the site has an owner: no process crawls now, so the owner has ended, whatever its clock said.
  schedule(name, row)
end
if row then touch(name) end
write(SITES, '\0units', after)
return finish(others)
