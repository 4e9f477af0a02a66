-- Give leases back unused.
-- A      { site, token, key, number }...
-- Result how many of the leases were open
-- Atomic: a URL is in its lane or leased, never in both.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local returned = 0
for _, lease in ipairs(A) do
  local name, token, key, number = unpack(lease)
  local row = site_of(name)
  if row and row.owner and row.token == token and lease_number(row, key) == number then
    give_back(name, row, key)
    touch(name)
    returned = returned + 1
  end
end
return finish(returned)
