-- A value is  state | 8 due | 16 copy (1 byte), lane (2), order (8), [never crawled: first seen (8)],
-- [crawled: bucket (1), last_crawled in ms (8)], [due (8)], [copy: file (4), offset (8), length (4), repository (2)],
-- body (msgpack, which scripts do not read).
-- All numbers are big-endian, times are doubles. Lane and order are the page's place in the site's queues, and stay in
-- the value while the page is leased. Then the page is in the row of its site instead (in lane LEASED), and returns to
-- its place.
-- A place is lane (2), order (8), page key. A node holds places in order; an inner node also each child's number (4).

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

-- Add a page to the counts of its site and shard (`many` 1), or remove it from them (-1).
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
