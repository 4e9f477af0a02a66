-- Remove pages from the collection: they become never-crawled again, at the end of their lane.
-- A      { site, token, { key, value as it was read, lane, first seen, body, entry of the log or false }... }
-- Result false if the site lease is lost, else { evicted, to be read again }
-- Atomic: a page that changed after it was read is counted in the result, not overwritten.
-- Uses   fields counts sites leases places tree pages queues log ranks finish
local name, token = A[1], A[2]
local row = holds(name, token)
if not row then return finish(false) end
local evicted, again = 0, 0
for i = 3, #A do
  local key, value, lane, first_seen, body, entry = unpack(A[i])
  if fetch(PAGES, field(row, key)) ~= value then
    again = again + 1
  elseif not lease_number(row, key) then
    local before = header(value)
    dequeue(row, before, key)
    count_page(row, before, -1)
    local one = { state = 0, lane = lane, order = next_number('arrivals'), first_seen = first_seen, body = body }
    write(PAGES, field(row, key), value_of(one))
    enqueue(name, row, one, key)
    count_page(row, one, 1)
    note(entry)
    note_change(row, entry)
    evicted = evicted + 1
  end
end
touch(name)
return finish({ evicted, again })
