-- Lease URLs of active sites: the due URLs of each queue, chosen as in `store/lanes.py`.
-- A      { refills, horizons of the never-crawled queue, horizons of the recrawl queue }; a refill is
--        { site, token, immediate, never-crawled, recrawl, its index in each list of horizons, 0 for none (two numbers) };
--        a horizon is packed doubles
-- Result for each refill: false, or { { key, number, value }... of each of the three queues, { lane, order }... of the
--        entries that are left, whether a leased URL became immediate }
-- Atomic, so that no URL is leased twice and none is lost between queue and lease.
-- Uses   fields counts sites leases places tree pages queues ranks finish

local function unpacked(horizon)
  local times = {}
  for at = 1, #horizon, 8 do times[#times + 1] = get('>d', horizon, at) end
  return times
end

local classes, horizons = {}, {}
for i, packed in ipairs(A[2]) do classes[i] = unpacked(packed) end
for i, packed in ipairs(A[3]) do horizons[i] = unpacked(packed) end

local function hold(row, chosen)
  local leases, fields, held = {}, {}, { row.held or '' }
  for i, one in ipairs(chosen) do fields[i] = field(row, one.key) end
  fetch_all(PAGES, fields)
  for i, one in ipairs(chosen) do
    local key, number = one.key, unique_number('numbers')
    dequeue(row, one, key)
    held[i + 1] = put('>d', number) .. key
    leases[i] = { key, number, fetch(PAGES, fields[i]) }
  end
  row.held = table.concat(held)
  count('leased', #chosen)
  return leases
end

-- Return up to n places of the lanes from `low` to `high`, lane by lane.
local function first_of(row, low, high, n)
  local found = {}
  if n > 0 then
    walk(row, low, -INF, function(lane, order, key)
      if lane > high then return true end
      found[#found + 1] = { lane = lane, order = order, key = key }
      return #found >= n
    end)
  end
  return found
end

-- Call visit(lane, order of its first place) for each lane from `low` to `high` that has places.
local function each_lane(row, low, high, visit)
  local lane = low
  while lane <= high do
    local head = first_from(row, lane)
    if not head or head[1] > high then return end
    visit(head[1], head[2])
    lane = head[1] + 1
  end
end

-- Return up to n places of one lane whose time is not after `horizon`.
local function due_in(row, lane, n, horizon, time_at)
  local found = {}
  walk(row, lane, -INF, function(its_lane, order, key)
    if its_lane ~= lane or #found >= n then return true end
    local time = time_at(order, key)
    if time > horizon then return true end
    found[#found + 1] = { lane = lane, order = order, key = key, time = time }
    return false
  end)
  return found
end

local function by_overdue(a, b)
  if a.first ~= b.first then return a.first end
  if a.overdue ~= b.overdue then return a.overdue < b.overdue end
  if a.lane ~= b.lane then return a.lane < b.lane end
  if a.order ~= b.order then return a.order < b.order end
  return is_before(a.key, b.key)
end

local function cut(found, n)
  for i = #found, n + 1, -1 do found[i] = nil end
  return found
end

local function overdue_by(time, horizon)
  if horizon == INF then return -INF end
  return time - horizon
end

local function due_never_crawled(row, n, times)
  if n <= 0 then return {} end
  if not times then return first_of(row, FIRST_CLASS, LAST_CLASS, n) end
  local found = {}
  each_lane(row, FIRST_CLASS, LAST_CLASS, function(lane)
    local horizon = times[lane]
    local function first_seen(_, key) return header(fetch(PAGES, field(row, key))).first_seen end
    for _, one in ipairs(due_in(row, lane, n, horizon, first_seen)) do
      one.overdue = overdue_by(one.time, horizon)
      found[#found + 1] = one
    end
  end)
  table.sort(found, by_overdue)
  return cut(found, n)
end

local function due_recrawl(row, n, times)
  if n <= 0 then return {} end
  local live, dead = {}, {}
  local function order_alone(order) return order end
  each_lane(row, FIRST_LANE, LAST_LANE, function(lane)
    local horizon = times[lane - FIRST_LANE + 1]
    for _, one in ipairs(due_in(row, lane, n, horizon, order_alone)) do
      if lane == RETRY then
        dead[#dead + 1] = one
      else
        one.first = lane == ADVANCED
        one.overdue = one.first and one.order or overdue_by(one.order, horizon)
        live[#live + 1] = one
      end
    end
  end)
  local places = n
  if #live > 0 then places = n > 1 and math.max(1, floor(n / RETRY_SHARE)) or 0 end
  cut(dead, places)
  table.sort(live, by_overdue)
  cut(live, n - #dead)
  for _, one in ipairs(dead) do live[#live + 1] = one end
  return live
end

local function deal(name, token, immediate, never_crawled, recrawl, which_classes, which_horizon)
  local row = holds(name, token)
  if not row then return false end
  touch(name)
  local urgent = hold(row, first_of(row, IMMEDIATE, IMMEDIATE, immediate))
  local never = hold(row, due_never_crawled(row, never_crawled, classes[which_classes]))
  local known = hold(row, due_recrawl(row, recrawl, horizons[which_horizon]))
  if #urgent < immediate then row.hurried = nil end
  local overtaken = row.overtaken and immediate > 0
  if overtaken then row.overtaken = nil end
  if #never < never_crawled then row.fresh = nil end
  local left = {}
  each_lane(row, FIRST_LANE, LAST_LANE, function(lane, order) left[#left + 1] = { lane - FIRST_LANE, text(order) } end)
  return { urgent, never, known, left, overtaken and 1 or 0 }
end

local answer = {}
for i, refill in ipairs(A[1]) do answer[i] = deal(unpack(refill)) end
return finish(answer)
