-- Make crawled pages of a site due, unless they are due sooner already, immediate or leased.
-- A      { site, due, key... }
-- Result { number of moved pages, 1 if the site is due sooner than before, else 0 }
-- Atomic: any process may call it, while an ant leases the same pages.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local name, due, moved = A[1], A[2], 0
local row = site_of(name)
for i = 3, #A do
  local key = A[i]
  local value = row and fetch(PAGES, field(row, key))
  if value and not lease_number(row, key) then
    local one = header(value)
    if one.state == CRAWLED and one.lane ~= IMMEDIATE and not (one.due and one.due <= due) then
      dequeue(row, one, key)
      if one.lane ~= RETRY then one.lane = ADVANCED end
      one.order, one.due = due, due
      write(PAGES, field(row, key), value_of(one))
      enqueue(name, row, one, key)
      due_sooner(name, row, due)
      touch(name)
      moved = moved + 1
    end
  end
end
return finish({ moved, sooner })
