-- The tree of places: changing it.

local function write_node(name, node)
  write(NODES, name, node ~= '' and node)
end

local function new_node(row, node)
  row.last = row.last + 1
  write_node(name_of(row, row.last), node)
  return row.last
end

-- Return the path from the root to the leaf where a place belongs: the names of the nodes, and for each inner node the
-- item taken, -1 if the place is before that of the first item.
local function descend(row, lane, order, key)
  local path, taken, width = {}, {}, row.w + 14
  local number = row.root
  for level = row.h, 1, -1 do
    local name = name_of(row, number)
    local node = read_node(name)
    local item = rank(node, width, lane, order, key) - 1
    path[#path + 1], taken[#taken + 1] = name, item
    number = get('>I4', node, math.max(item, 0) * width + width - 3)
  end
  path[#path + 1] = name_of(row, number)
  return path, taken
end

local function insert(row, lane, order, key)
  local place = put('>I2d', lane, order) .. key
  local path, taken = descend(row, lane, order, key)
  for level, its_item in ipairs(taken) do
    -- In a parent, the place beside a child's number is never after the child's first place, or splits would break the
    -- order.
    if its_item < 0 then write_node(path[level], place .. sub(read_node(path[level]), row.w + 11)) end
  end
  local item, width = place, row.w + 10
  for level = #path, 1, -1 do
    local name = path[level]
    local node = read_node(name)
    local at = rank(node, width, lane, order, key)
    node = sub(node, 1, at * width) .. item .. sub(node, at * width + 1)
    local size = #node / width
    if size <= NODE_SIZE then
      write_node(name, node)
      return
    end
    -- New URLs come at the end of their lane. Splitting there leaves full nodes behind.
    local left = at + 1
    if left < NODE_SIZE * 3 / 4 then left = floor(size / 2) elseif left == size then left = size - 1 end
    write_node(name, sub(node, 1, left * width))
    local right = sub(node, left * width + 1)
    local first = sub(right, 1, row.w + 10)
    item = first .. put('>I4', new_node(row, right))
    lane, order = get('>I2d', first)
    key = sub(first, 11)
    width = row.w + 14
  end
  -- The root was split, so the tree gets a new root.
  row.root = new_node(row, put('>I2d', 0, -INF) .. string.rep('\0', row.w) .. put('>I4', row.root) .. item)
  row.h = row.h + 1
end

local function remove(row, lane, order, key)
  local path, taken = descend(row, lane, order, key)
  local width = row.w + 10
  for level = #path, 1, -1 do
    local name = path[level]
    local node = read_node(name)
    local at
    if level == #path then at = rank(node, width, lane, order, key) - 1 else at = math.max(taken[level], 0) end
    node = sub(node, 1, at * width) .. sub(node, (at + 1) * width + 1)
    if #node > 0 or level == 1 then
      write_node(name, node)
      break
    end
    write_node(name, '')
    width = row.w + 14
  end
  while row.h > 0 do
    local name = name_of(row, row.root)
    local node = read_node(name)
    if #node > row.w + 14 then break end
    write_node(name, '')
    if #node == 0 then
      row.root = new_node(row, '')
      row.h = 0
    else
      row.root = get('>I4', node, row.w + 11)
      row.h = row.h - 1
    end
  end
end
