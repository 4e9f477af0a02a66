-- Put pages of a site under other policies. Never-crawled pages move to the lanes of their new classes and keep their
-- arrival numbers.
-- A      { site, { key, value as it was read, new lane or false, new body }... }
-- Result { number of changed pages, keys of leased pages }
-- Atomic: a page stays as it is if it was leased, forgotten or changed after it was read.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local name, put, leased = A[1], 0, {}
local row = site_of(name)
for i = 2, #A do
  local key, value, lane, body = unpack(A[i])
  if row and lease_number(row, key) then
    leased[#leased + 1] = key
  elseif row and fetch(PAGES, field(row, key)) == value then
    local one = header(value)
    dequeue(row, one, key)
    if lane then one.lane = lane end
    one.body = body
    write(PAGES, field(row, key), value_of(one))
    enqueue(name, row, one, key)
    put = put + 1
  end
end
if put > 0 then touch(name) end
return finish({ put, leased })
