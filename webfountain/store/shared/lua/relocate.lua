-- Update page records whose copies moved, if they still name the old location.
-- A      { site, key, old copy, new copy }...
-- Result number of updated records
-- Atomic: a fetch may replace the copy meanwhile.
-- Uses   fields counts sites leases pages ranks finish
local followed = 0
for _, move in ipairs(A) do
  local name, key, old, new = unpack(move)
  local row = site_of(name)
  local value = row and fetch(PAGES, field(row, key))
  if value then
    local one = header(value)
    if one.copy == old then
      count_copy(old, -1)
      count_copy(new, 1)
      one.copy = new
      write(PAGES, field(row, key), value_of(one))
      followed = followed + 1
    end
  end
end
return finish(followed)
