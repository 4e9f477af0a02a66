-- The part that every step uses. The names of the keys and the constants precede it (`scripts.py`).
--
-- KEYS   the fourteen keys of one shard, all in one hash slot, the same for every step (`scripts.py` builds them):
--        pages    hash   site number .. page key -> value, see `pages.lua`
--        nodes    hash   site number .. node number -> a node of the site's tree of places
--        sites    hash   name -> row (cmsgpack); name .. NUL .. "s" -> state, name .. NUL .. "l" -> learned,
--                 name .. NUL .. "p" .. number -> a part of it, name .. NUL .. "n" -> numbers of its parts
--        due      zset   name -> when the site may be activated
--        names    zset   name -> 0
--        ranks    zset   the sites in all orders, see `ranks.lua` -> 0
--        counts   hash   the counts for `statistics`, and the last numbers given
--        buckets  hash   bucket .. "p" | "s" -> crawled pages, sum of their last_crawled in ms
--        rows     hash   period:bucket:column -> a count of the census
--        copies   hash   repository:file -> page records that name it
--        barred   set    forgotten sites; site .. NUL .. page key
--        hurry    set    sites that may have immediate URLs waiting
--        log      hash   sequence -> an entry of the change log: its time (8), the rest as msgpack
--        life     hash   marks by which a step detects a set-back, see `guard.lua`
-- ARGV   one msgpack array, `A`

local A = cmsgpack.unpack(ARGV[1])
local call, get, put = redis.call, struct.unpack, struct.pack
local floor, sub, byte = math.floor, string.sub, string.byte
local INF = math.huge

-- Return a double as text that Python reads back exactly; as a number in a reply it would be truncated.
local function text(number)
  return string.format('%.17g', number)
end

-- Return a time in the form in which rows store it, because cmsgpack has no infinity.
local function keep(time)
  if time == INF then return 'inf' end
  return time
end

local function time_of(kept)
  if kept == nil then return INF end
  return tonumber(kept)
end
