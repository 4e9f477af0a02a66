-- URL leases. They are stored in the row of their site (`held`).

local ended = {} -- row -> keys whose leases end in this step; `finish` removes them from the row together

-- Call visit(number, key) for each lease of a site, until it returns true.
local function each_lease(row, visit)
  local held, over = row.held or '', ended[row] or {}
  for at = 1, #held, row.w + 8 do
    local key = sub(held, at + 8, at + 7 + row.w)
    if not over[key] and visit(get('>d', held, at), key) then return end
  end
end

local MANY = 4096 -- most bytes of leases that are searched for each page; more bytes get an index

local indices = {} -- leases of a row -> page key -> position

-- Return the position of a page's lease in the row, nil if there is none.
local function lease_at(row, key)
  local held, at = row.held, 0
  if not held or #key ~= row.w or ended[row] and ended[row][key] then return nil end
  if #held > MANY then
    if not indices[held] then
      indices[held] = {}
      for place = 1, #held, row.w + 8 do indices[held][sub(held, place + 8, place + 7 + row.w)] = place end
    end
    return indices[held][key]
  end
  repeat
    at = held:find(key, at + 1, true)
  until not at or (at - 9) % (row.w + 8) == 0
  return at and at - 8
end

local function lease_number(row, key)
  local at = lease_at(row, key)
  return at and (get('>d', row.held, at))
end

-- End the lease of a page, which must have one.
local function end_lease(row, key)
  if not ended[row] then ended[row] = {} end
  ended[row][key] = true
  count('leased', -1)
end

local function without_ended(row)
  local key = next(ended[row])
  if next(ended[row], key) then
    local kept = {}
    each_lease(row, function(number, its_key) kept[#kept + 1] = put('>d', number) .. its_key end)
    row.held = table.concat(kept)
  else
    ended[row] = nil
    local at = lease_at(row, key)
    row.held = sub(row.held, 1, at - 1) .. sub(row.held, at + row.w + 8)
  end
  if row.held == '' then row.held = nil end
end
