-- Remove pages of a site for good, or the site itself.
-- A      { site, whole, at most, key... }; `whole`: bar the site, and remove up to `at most` of its pages, whichever
-- Result { removed, whether nothing of the site is left }
-- Atomic for what it removes; a large site takes several calls, and is barred by the first.
local name, whole, most = unpack(A, 1, 3)
local row = site_of(name)
local keys, removed = {}, 0
if whole then
  call('SADD', BARRED, name)
  if row and row.w then
    walk(row, 0, -INF, function(_, _, key)
      if #keys >= most then return true end
      keys[#keys + 1] = key
      return false
    end)
  end
else
  for i = 4, #A do
    keys[#keys + 1] = A[i]
    call('SADD', BARRED, name .. '\0' .. A[i])
  end
end
for _, key in ipairs(keys) do
  local value = row and call('HGET', PAGES, field(row, key))
  if value then
    local one, number = header(value), lease_number(row, key)
    if number then end_lease(row, key, number) else dequeue(row, one, key) end
    count_page(row, one, -1)
    call('HDEL', PAGES, field(row, key))
    touch(name)
    removed = removed + 1
  end
end
local left = row and row.n[1] + row.n[2] + row.n[3] + row.n[4] + row.n[5] + row.n[6] or 0
if whole and row and left == 0 then
  if row.owner then count('active', -1) end
  count('sites', -1)
  call('HDEL', SITES, name, name .. '\0s', name .. '\0l')
  call('ZREM', DUE, name)
  call('ZREM', NAMES, name)
  call('SREM', HURRY, name)
  rows[name], changed[name] = false, nil
end
return finish({ removed, left == 0 and 1 or 0 })
