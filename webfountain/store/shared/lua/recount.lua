-- Count a site's pages anew, and let its row say so.
-- A      { site }
-- Result false for none, else { whether it is somebody's, leased, immediate and not leased, { pages by state... },
--        { bucket, pages, seconds, milliseconds... }, { repository:file, pages... } }: the sum of `last_crawled` comes
--        in two parts, for a double is too short for it
-- Atomic: what changes meanwhile is counted once.
-- Uses   fields counts sites leases places pages ranks finish
local row = site_of(A[1])
if not row then return finish(false) end
local n, immediate, waiting, leased = { 0, 0, 0, 0, 0, 0 }, 0, 0, 0
local buckets, copies = {}, {}
local function take(lane, _, key)
  local value = call('HGET', PAGES, field(row, key))
  if not value then return false end
  local one = header(value)
  n[one.state + 1] = n[one.state + 1] + 1
  if lane == LEASED then leased = leased + 1 end
  if one.lane == IMMEDIATE then
    immediate = immediate + 1
    if lane ~= LEASED then waiting = waiting + 1 end
  end
  if one.state == CRAWLED then
    local sums = buckets[one.bucket] or { 0, 0, 0 }
    buckets[one.bucket] = { sums[1] + 1, sums[2] + floor(one.crawled_ms / 1000), sums[3] + one.crawled_ms % 1000 }
  end
  if one.copy then
    local name = get('>I2', one.copy, 17) .. ':' .. get('>I4', one.copy, 1)
    copies[name] = (copies[name] or 0) + 1
  end
  return false
end
if row.w then walk(row, 0, -INF, take) end
row.n, row.imm = n, immediate
touch(A[1])
local by_bucket, by_file = {}, {}
for bucket, sums in pairs(buckets) do
  for _, each in ipairs({ bucket, sums[1], text(sums[2]), text(sums[3]) }) do by_bucket[#by_bucket + 1] = each end
end
for name, many in pairs(copies) do
  by_file[#by_file + 1] = name
  by_file[#by_file + 1] = many
end
return finish({ row.owner and 1 or 0, leased, waiting, n, by_bucket, by_file })
