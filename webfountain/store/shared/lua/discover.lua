-- Make links known. With `put_first`, also put them on the immediate lanes of their sites.
-- A      { links, at, period, put_first }; a link is { site, key, lane, body, from outside }
-- Result { number of new URLs, number put on immediate lanes, 1 if a site is due sooner than before else 0, positions
--        of the known links, from 1... }
-- Atomic: if two processes find one URL, only one of them makes it known.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local links, at, period, put_first = A[1], A[2], A[3], A[4]
local new, outside, put_count, known = 0, 0, 0, {}

local function is_barred(name, key)
  return call('SISMEMBER', BARRED, name) == 1 or call('SISMEMBER', BARRED, name .. '\0' .. key) == 1
end

local any_barred = call('EXISTS', BARRED) == 1

local function discover(name, key, lane, body)
  if any_barred and is_barred(name, key) then return false end
  local row = site_of(name)
  if row and fetch(PAGES, field(row, key)) then return false end
  row = row or new_site(name, at, at)
  take_width(row, key)
  touch(name)
  due_sooner(name, row, at)
  if row.owner and at < time_of(row.fresh) then row.fresh = keep(at) end
  local one = { state = 0, lane = lane, order = next_number('arrivals'), first_seen = at, body = body }
  write(PAGES, field(row, key), value_of(one))
  enqueue(name, row, one, key)
  count_page(row, one, 1)
  return true
end

local function put_immediate(name, key)
  local row = site_of(name)
  local value = row and fetch(PAGES, field(row, key))
  if not value then return false end
  local one = header(value)
  if one.lane == IMMEDIATE then return false end
  local leased = lease_number(row, key)
  if not leased then dequeue(row, one, key) end
  one.lane, one.order = IMMEDIATE, next_number('arrivals')
  write(PAGES, field(row, key), value_of(one))
  row.imm = row.imm + 1
  touch(name)
  if leased then
    -- It enters the lane when it is released; the owner of the site must be informed.
    row.overtaken = true
    call('SADD', HURRY, name)
    return true
  end
  enqueue(name, row, one, key)
  due_sooner(name, row, 0)
  if row.owner then row.hurried = true end
  return true
end

local function read_ahead()
  local sites, fields = {}, {}
  local last
  for _, link in ipairs(links) do
    if link[1] ~= last then
      last = link[1]
      sites[#sites + 1] = last
    end
  end
  fetch_all(SITES, sites)
  for _, link in ipairs(links) do
    local row = site_of(link[1])
    if row then fields[#fields + 1] = field(row, link[2]) end
  end
  fetch_all(PAGES, fields)
end

if #links > 1 then read_ahead() end
for nth, link in ipairs(links) do
  if discover(link[1], link[2], link[3], link[4]) then
    new = new + 1
    if link[5] then outside = outside + 1 end
  else
    known[#known + 1] = nth
  end
end
if outside > 0 then call('HINCRBY', ROWS, period .. ':-:4', outside) end
if put_first then
  for _, link in ipairs(links) do
    if put_immediate(link[1], link[2]) then put_count = put_count + 1 end
  end
end
local answer = { new, put_count, sooner }
for _, nth in ipairs(known) do answer[#answer + 1] = nth end
return finish(answer)
