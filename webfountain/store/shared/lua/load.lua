-- Put rows of an export into a new store.
-- A      { number of the call, rows... }; a row is { kind, contents... }, in the order of the export; each kind is a
--        function below
-- Result 0
-- Atomic: if the answer is lost, the call is sent again, and changes nothing then. `loaded` is the number of the last.
-- Uses   fields counts sites leases places tree pages queues log ranks finish
local kinds = {}

function kinds.site(name, first, due, state, learned, epoch, changed, regrading)
  local row = new_site(name, first, due)
  row.epoch, row.reg, row.chg = epoch, regrading or nil, changed > 0 and changed or nil
  write(SITES, name .. '\0s', state)
  write(SITES, name .. '\0l', learned ~= '' and learned)
end

function kinds.part(name, number, part)
  local numbers = fetch(SITES, name .. '\0n')
  numbers = numbers and cmsgpack.unpack(numbers) or {}
  numbers[#numbers + 1] = number
  write(SITES, name .. '\0n', cmsgpack.pack(numbers))
  write(SITES, name .. '\0p' .. number, part)
end

function kinds.page(name, key, value)
  local row, one = site_of(name), header(value)
  take_width(row, key)
  write(PAGES, field(row, key), value)
  enqueue(name, row, one, key)
  count_page(row, one, 1)
  if one.state == NEVER_CRAWLED or one.lane == IMMEDIATE then give_at_least('arrivals', one.order) end
  touch(name)
end

function kinds.change(name, entry, dates)
  note(entry)
  local row = dates and site_of(name)
  if row then
    note_change(row, entry)
    touch(name)
  end
end

function kinds.forgotten(name)
  call('SADD', BARRED, name)
end

function kinds.census(name, many)
  write(ROWS, name, many)
end

if tonumber(fetch(COUNTS, 'loaded') or 0) < A[1] then
  for i = 2, #A do kinds[A[i][1]](unpack(A[i], 2)) end
  write(COUNTS, 'loaded', A[1])
end
return finish(0)
