-- Sites. A row: id, first (seen), due, n (pages by state, from 1), imm (pages in the immediate lane, with leased ones),
-- epoch, reg (epoch, lane and order that a regrade has reached), root, h (height) and last (node number) of the tree,
-- w (bytes of a page key), chg and rk (`ranks.lua`). While the site has an owner: owner, token, fresh, hurried,
-- overtaken, held (its URL leases, in order: for each its number (8) and the page key). After a lost life: era, the
-- current era (`era.lua`) if the site was taken or given up in it; had, the owner of the site at the end of the lost
-- life.

local rows, changed = {}, {}

local function site_of(name)
  local row = rows[name]
  if row == nil then
    local raw = fetch(SITES, name)
    row = raw and cmsgpack.unpack(raw) or false
    rows[name] = row
  end
  return row
end

local function touch(name)
  changed[name] = true
end

-- While a site has an owner, its deadline is only in DUE, so that a heartbeat writes no row.
local function available(name, row)
  if row.owner then return tonumber(call('ZSCORE', DUE, name)) end
  return time_of(row.due)
end

local function schedule(name, row)
  call('ZADD', DUE, keep(time_of(row.due)), name)
end

-- All page keys of a site have the same width.
local function take_width(row, key)
  row.w = row.w or #key
  if row.w ~= #key then error('a page key of ' .. #key .. ' bytes on a site of ' .. row.w) end
end

local sooner = 0 -- 1 if the step made a site due sooner than before

local function due_sooner(name, row, due)
  if not row.owner and due < time_of(row.due) then
    sooner = 1
    row.due = keep(due)
    touch(name)
    schedule(name, row)
  end
end

local function new_site(name, first, due)
  local row = {
    id = next_number('ids'), first = first, due = keep(due), n = { 0, 0, 0, 0, 0, 0 }, imm = 0, epoch = 0,
    root = 1, h = 0, last = 1,
  }
  rows[name] = row
  call('ZADD', NAMES, 0, name)
  count('sites', 1)
  schedule(name, row)
  touch(name)
  sooner = 1
  return row
end

-- Return the row if a site lease is the site's latest. A lost lease is counted, and the result is false.
local function holds(name, token)
  local row = site_of(name)
  if row and row.owner and row.token == token then return row end
  count('fenced', 1)
  return false
end
