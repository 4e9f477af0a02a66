-- The tree of places: reading it. A place is lane (2), order (8), page key. A node holds places in order; an inner node
-- also holds the number (4) of each child. Bytes are compared as numbers, because Lua compares strings by the server's
-- locale.

local function name_of(row, number)
  return put('>I4I4', row.id, number)
end

local function read_node(name)
  return fetch(NODES, name) or ''
end

local function is_before(a, b)
  for i = 1, #a do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x < y end
  end
  return false
end

-- Return how many items of a node, each `width` wide, are at or before a place. An empty key is after all keys of its
-- order.
local function rank(node, width, lane, order, key)
  local low, high = 0, #node / width
  while low < high do
    local middle = floor((low + high) / 2)
    local at = middle * width + 1
    local its_lane, its_order = get('>I2d', node, at)
    local before
    if its_lane ~= lane then before = its_lane < lane
    elseif its_order ~= order then before = its_order < order
    else before = key == '' or not is_before(key, sub(node, at + 10, at + 9 + #key)) end
    if before then low = middle + 1 else high = middle end
  end
  return low
end

-- Call visit(lane, order, key) for each place after (lane, order, `after`), until it returns true. Without `after`, all
-- places of that lane and order are skipped. Leased pages come last.
local function walk(row, lane, order, visit, after)
  after = after or ''
  local function under(number, height)
    local node = read_node(name_of(row, number))
    if height == 0 then
      local width = row.w + 10
      for at = rank(node, width, lane, order, after) * width + 1, #node, width do
        local its_lane, its_order = get('>I2d', node, at)
        if visit(its_lane, its_order, sub(node, at + 10, at + width - 1)) then return true end
      end
      return false
    end
    local width = row.w + 14
    for at = math.max(rank(node, width, lane, order, after) - 1, 0) * width + 1, #node, width do
      if under(get('>I4', node, at + width - 4), height - 1) then return true end
    end
    return false
  end
  if (lane == LEASED or not under(row.root, row.h)) and row.held then
    each_lease(row, function(number, key)
      return (lane < LEASED or number > order) and visit(LEASED, number, key)
    end)
  end
end

-- Return the first place of a lane, or of the next lane that has places.
local function first_from(row, lane)
  local found
  walk(row, lane, -INF, function(its_lane, its_order, key)
    found = { its_lane, its_order, key }
    return true
  end)
  return found
end
