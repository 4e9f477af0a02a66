-- What steps share. Each step is one script: what it uses of this prelude, then its own file; it runs whole or not at
-- all. A paragraph here begins with what it makes, and goes along where that is named (`scripts.py`).
--
-- KEYS   the twelve keys of one shard, all in one hash slot, the same for every step (`scripts.py` builds them):
--        pages    hash   site number .. page key -> value, see below
--        nodes    hash   site number .. node number -> a node of the site's tree of places
--        sites    hash   name -> row (cmsgpack); name .. NUL .. "s" -> state, name .. NUL .. "l" -> learned,
--                 name .. NUL .. "p" .. number -> a part of it, name .. NUL .. "n" -> the numbers (cmsgpack)
--        due      zset   name -> when the site may be activated
--        names    zset   name -> 0
--        counts   hash   what `statistics` shows, and the counters that numbers come from
--        buckets  hash   bucket .. "p" | "s" -> crawled pages, sum of their last_crawled in ms
--        rows     hash   period:bucket:column -> what the census counted
--        copies   hash   repository:file -> page records that name it
--        barred   set    forgotten sites; site .. NUL .. page key
--        hurry    set    sites that may have immediate URLs waiting
--        log      hash   sequence -> an entry of the change log: its time (8), the rest as msgpack
-- ARGV   one msgpack array, `A`
--
-- A value is  state | 8 due | 16 copy (1 byte), lane (2), order (8), [never crawled: first seen (8)],
-- [crawled: bucket (1), last_crawled in ms (8)], [due (8)], [copy: file (4), offset (8), length (4), repository (2)], body (msgpack, of no interest here).
-- All numbers are big-endian, times are doubles. Lane and order are the page's place in the site's queues, also while
-- it is leased: then it stands in its site's row, which says lane LEASED for it, and returns to its place.
-- A place is lane (2), order (8), page key. A node holds places in order; an inner node also each child's number (4).

local PAGES, NODES, SITES, DUE, NAMES, COUNTS, BUCKETS, ROWS, COPIES, BARRED, HURRY, LOG =
  unpack(KEYS)
local A = cmsgpack.unpack(ARGV[1])
local call, get, put = redis.call, struct.unpack, struct.pack
local floor, sub, byte = math.floor, string.sub, string.byte
local INF = math.huge

local IMMEDIATE, FIRST_CLASS, LAST_CLASS, FIRST_LANE = 0, 1, 64, 65
local ADVANCED, RETRY, LAST_LANE, LEASED = FIRST_LANE + 256, FIRST_LANE + 257, FIRST_LANE + 257, 65535
local RETRY_SHARE = 10
local NEVER_CRAWLED, CRAWLED, HAS_DUE, HAS_COPY = 0, 1, 8, 16
local NODE_SIZE = 96
local COPY_BYTES = 18

-- Numbers -------------------------------------------------------------------------------------------------------------

-- A double as Python reads it back exactly; integers in replies would be cut.
local function text(number)
  return string.format('%.17g', number)
end

-- cmsgpack has no infinity.
local function keep(time)
  if time == INF then return 'inf' end
  return time
end

local function time_of(kept)
  if kept == nil then return INF end
  return tonumber(kept)
end

-- Fields of hashes ----------------------------------------------------------------------------------------------------
-- Each is read once and written once: `finish` writes all of a hash with one command. What a step wrote is known here
-- and nowhere else until then; a step that fails has written nothing.

local known, written = {}, {}

local AT_ONCE = 1000 -- arguments of one command: Lua's stack is bounded

-- The value of a field; false for none.
local function fetch(hash, name)
  local of = known[hash]
  if not of then
    of = {}
    known[hash] = of
  end
  local value = of[name]
  if value == nil then
    value = call('HGET', hash, name)
    of[name] = value
  end
  return value
end

-- Read at once what will be fetched.
local function fetch_all(hash, names)
  if #names < 2 then return end
  local of = known[hash] or {}
  known[hash] = of
  for from = 1, #names, AT_ONCE do
    local to = math.min(from + AT_ONCE - 1, #names)
    for i, value in ipairs(call('HMGET', hash, unpack(names, from, to))) do
      if of[names[from + i - 1]] == nil then of[names[from + i - 1]] = value end
    end
  end
end

-- Let a field have a value, or with false none.
local function write(hash, name, value)
  if not known[hash] then known[hash] = {} end
  if not written[hash] then written[hash] = {} end
  known[hash][name] = value
  written[hash][name] = true
end

local function write_out(hash, names)
  local of, only = known[hash], next(names)
  if not next(names, only) then
    if of[only] then call('HSET', hash, only, of[only]) else call('HDEL', hash, only) end
    return
  end
  local sent, gone = {}, {}
  for name in pairs(names) do
    local value = of[name]
    if value then
      sent[#sent + 1] = name
      sent[#sent + 1] = value
      if #sent == AT_ONCE then
        call('HSET', hash, unpack(sent))
        sent = {}
      end
    else
      gone[#gone + 1] = name
    end
  end
  if #sent > 0 then call('HSET', hash, unpack(sent)) end
  for from = 1, #gone, AT_ONCE do
    call('HDEL', hash, unpack(gone, from, math.min(from + AT_ONCE - 1, #gone)))
  end
end

-- Counts --------------------------------------------------------------------------------------------------------------

local added, given = {}, {} -- name -> what is to be added; name -> the last number given

local function count(name, many)
  added[name] = (added[name] or 0) + many
end

-- A number that was not given before, `least` or more.
local function next_number(name, least)
  local number = (given[name] or tonumber(call('HGET', COUNTS, name) or 0)) + 1
  if least and number < least then number = least end
  given[name] = number
  return number
end

local sums = { [BUCKETS] = {}, [COPIES] = {} }

-- As `count`, in another hash, of numbers that may be too large for a double.
local function add(hash, name, many)
  sums[hash][name] = (sums[hash][name] or 0) + many
end

local function write_counts()
  local names, sent = {}, {}
  for name, many in pairs(added) do
    if many ~= 0 then names[#names + 1] = name end
  end
  if #names > 0 then
    for i, before in ipairs(call('HMGET', COUNTS, unpack(names))) do
      sent[#sent + 1] = names[i]
      sent[#sent + 1] = tonumber(before or 0) + added[names[i]]
    end
  end
  for name, number in pairs(given) do
    sent[#sent + 1] = name
    sent[#sent + 1] = number
  end
  if #sent > 0 then call('HSET', COUNTS, unpack(sent)) end
  for name, many in pairs(sums[BUCKETS]) do
    if many ~= 0 then call('HINCRBY', BUCKETS, name, many) end
  end
  for name, many in pairs(sums[COPIES]) do
    if many ~= 0 and call('HINCRBY', COPIES, name, many) == 0 then call('HDEL', COPIES, name) end
  end
end

-- Sites ---------------------------------------------------------------------------------------------------------------
-- A row: id, first (seen), due, n (pages by state, from 1), imm (pages in the immediate lane, leased ones too), epoch,
-- reg (epoch, lane and order that a regrade has come to), root, h (height) and last (node number) of the tree, w (bytes
-- of a page key); while it is somebody's: owner, token, fresh, hurried, overtaken, held (its leases, in order: of
-- each its number (8) and the page key).

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

-- While it is somebody's its deadline stands in DUE alone, so that a heartbeat writes no row.
local function available(name, row)
  if row.owner then return tonumber(call('ZSCORE', DUE, name)) end
  return time_of(row.due)
end

local function schedule(name, row)
  call('ZADD', DUE, keep(time_of(row.due)), name)
end

local sooner = 0 -- 1 where a step let a site be due earlier than before

local function due_sooner(name, row, due)
  if not row.owner and due < time_of(row.due) then
    sooner = 1
    row.due = keep(due)
    touch(name)
    schedule(name, row)
  end
end

-- Whether a site lease is the site's last; each that is not is counted.
local function holds(name, token)
  local row = site_of(name)
  if row and row.owner and row.token == token then return row end
  count('fenced', 1)
  return false
end

-- The tree of places --------------------------------------------------------------------------------------------------
-- Comparisons are of numbers, for Lua compares strings by the server's locale.

local function name_of(row, number)
  return put('>I4I4', row.id, number)
end

local function read_node(name)
  return fetch(NODES, name) or ''
end

local function write_node(name, node)
  write(NODES, name, node ~= '' and node)
end

local function new_node(row, node)
  row.last = row.last + 1
  write_node(name_of(row, row.last), node)
  return row.last
end

local function is_before(a, b)
  for i = 1, #a do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x < y end
  end
  return false
end

-- How many items of a node, each `width` wide, stand at or before a place; an empty key stands after all of its order.
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

-- From the root to the leaf where a place belongs: names of the nodes, and in each inner one the item taken, -1 where
-- the place is below that of the first.
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
    -- A child's number in its parent stands by a place that is not after the child's first, or a split would disorder it.
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
    -- Arrivals come at the end of their lane: splitting there leaves full nodes behind.
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
  -- The root was split.
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

local ended = {} -- row -> keys whose leases end with this step: `finish` takes them out of the row at once

-- Calls visit(number, key) for each lease of a site, until it returns true.
local function each_lease(row, visit)
  local held, over = row.held or '', ended[row] or {}
  for at = 1, #held, row.w + 8 do
    local key = sub(held, at + 8, at + 7 + row.w)
    if not over[key] and visit(get('>d', held, at), key) then return end
  end
end

-- Calls visit(lane, order, key) for the places after (lane, order) or after that page there, until it returns true;
-- what is leased comes last.
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

-- The first place of a lane, or of the first lane after it.
local function first_from(row, lane)
  local found
  walk(row, lane, -INF, function(its_lane, its_order, key)
    found = { its_lane, its_order, key }
    return true
  end)
  return found
end

-- Pages ---------------------------------------------------------------------------------------------------------------

local function field(row, key)
  return put('>I4', row.id) .. key
end

local function header(value)
  local first = byte(value, 1)
  local lane, order = get(">I2d", value, 2)
  local one = { state = first % 8, lane = lane, order = order }
  local at = 12
  if one.state == NEVER_CRAWLED then
    one.first_seen = get('>d', value, at)
    at = at + 8
  elseif one.state == CRAWLED then
    one.bucket, one.crawled_ms = get('>Bd', value, at)
    at = at + 9
  end
  if floor(first / HAS_DUE) % 2 == 1 then
    one.due = get('>d', value, at)
    at = at + 8
  end
  if floor(first / HAS_COPY) % 2 == 1 then
    one.copy = sub(value, at, at + COPY_BYTES - 1)
    at = at + COPY_BYTES
  end
  one.body = sub(value, at)
  return one
end

local function value_of(one)
  local first = one.state
  local parts = { '', put('>I2d', one.lane, one.order) }
  if one.state == NEVER_CRAWLED then parts[#parts + 1] = put('>d', one.first_seen) end
  if one.state == CRAWLED then parts[#parts + 1] = put('>Bd', one.bucket, one.crawled_ms) end
  if one.due then
    first = first + HAS_DUE
    parts[#parts + 1] = put('>d', one.due)
  end
  if one.copy then
    first = first + HAS_COPY
    parts[#parts + 1] = one.copy
  end
  parts[1] = string.char(first)
  parts[#parts + 1] = one.body
  return table.concat(parts)
end

local function count_copy(copy, many)
  if not copy then return end
  local file = get('>I4', copy, 1)
  local repository = get('>I2', copy, 17)
  add(COPIES, repository .. ':' .. file, many)
end

-- Take a page into the counts of its site and shard (many 1), or out of them (-1).
local function count_page(row, one, many)
  row.n[one.state + 1] = row.n[one.state + 1] + many
  count('state' .. one.state, many)
  if one.lane == IMMEDIATE then row.imm = row.imm + many end
  if one.state == CRAWLED then
    add(BUCKETS, one.bucket .. 'p', many)
    add(BUCKETS, one.bucket .. 's', many * one.crawled_ms)
  end
  count_copy(one.copy, many)
end

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

local MANY = 4096 -- bytes of leases that are looked through for each page; of more there is an index

local indices = {} -- leases of a row -> page key -> where it stands

-- Where a page's lease stands in the row; nil for none.
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

-- Let a never-crawled URL stand in the lane of its new class, if it stands as it did when `value` was read; 1 then.
local function move_class(name, row, key, value, lane, body)
  if fetch(PAGES, field(row, key)) ~= value or lease_number(row, key) then return 0 end
  local one = header(value)
  dequeue(row, one, key)
  one.lane, one.body = lane, body
  write(PAGES, field(row, key), value_of(one))
  enqueue(name, row, one, key)
  return 1
end

-- The change log ------------------------------------------------------------------------------------------------------

-- Number and keep an entry of the change log, where there is one.
local function note(entry)
  if entry then write(LOG, next_number('logged'), entry) end
end

-- Of the change log: how many entries went, and the number of the newest.
local function log_bounds()
  local kept = call('HMGET', COUNTS, 'log_dropped', 'logged')
  return tonumber(kept[1] or 0), tonumber(kept[2] or 0)
end

local function logged_at(entry)
  return (get('>d', entry, 1))
end

-- Leases --------------------------------------------------------------------------------------------------------------

-- Of a page with a lease.
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

local function give_back(name, row, key)
  end_lease(row, key)
  enqueue(name, row, header(fetch(PAGES, field(row, key))), key)
end

-- Return what is leased of a site to its places; how many URLs.
local function return_leases(name, row)
  local keys = {}
  each_lease(row, function(_, key) keys[#keys + 1] = key end)
  for _, key in ipairs(keys) do enqueue(name, row, header(fetch(PAGES, field(row, key))), key) end
  count('leased', -#keys)
  row.held, ended[row] = nil, nil
  return #keys
end

-- Answers -------------------------------------------------------------------------------------------------------------

local function site_answer(name, row)
  local known = call('HMGET', SITES, name .. '\0s', name .. '\0l')
  return {
    name, text(time_of(row.due)), text(row.first), row.owner or false, row.imm, row.epoch, row.token or 0,
    text(row.owner and available(name, row) or 0), known[1] or '', known[2] or '', unpack(row.n),
  }
end

-- Write what changed; the last call of every step that changes something, also where it only counted.
local function finish(answer)
  for row in pairs(ended) do without_ended(row) end
  for name in pairs(changed) do
    if rows[name] then write(SITES, name, cmsgpack.pack(rows[name])) end
  end
  write_counts()
  for hash, names in pairs(written) do write_out(hash, names) end
  return answer
end
