-- Pages in the queues of their site.

local function enqueue(name, row, one, key)
  insert(row, one.lane, one.order, key)
  if one.lane == IMMEDIATE then
    count('immediate', 1)
    call('SADD', HURRY, name)
  end
end

local function dequeue(row, one, key)
  remove(row, one.lane, one.order, key)
  if one.lane == IMMEDIATE then count('immediate', -1) end
end

-- Move a never-crawled URL to the lane of its new class, if it has not changed since `value` was read. Return 1 if it
-- moved.
local function move_class(name, row, key, value, lane, body)
  if fetch(PAGES, field(row, key)) ~= value or lease_number(row, key) then return 0 end
  local one = header(value)
  dequeue(row, one, key)
  one.lane, one.body = lane, body
  write(PAGES, field(row, key), value_of(one))
  enqueue(name, row, one, key)
  return 1
end

local function give_back(name, row, key)
  end_lease(row, key)
  enqueue(name, row, header(fetch(PAGES, field(row, key))), key)
end

-- Return the leased URLs of a site to their places. Return how many there were.
local function return_leases(name, row)
  local keys = {}
  each_lease(row, function(_, key) keys[#keys + 1] = key end)
  for _, key in ipairs(keys) do enqueue(name, row, header(fetch(PAGES, field(row, key))), key) end
  count('leased', -#keys)
  row.held, ended[row] = nil, nil
  return #keys
end
