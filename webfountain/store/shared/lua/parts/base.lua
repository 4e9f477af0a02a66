-- What every step uses. Before it stand the names of the keys and the constants (`scripts.py`).
--
-- KEYS   the fourteen keys of one shard, all in one hash slot, the same for every step (`scripts.py` builds them):
--        pages    hash   site number .. page key -> value, see below
--        nodes    hash   site number .. node number -> a node of the site's tree of places
--        sites    hash   name -> row (cmsgpack); name .. NUL .. "s" -> state, name .. NUL .. "l" -> learned,
--                 name .. NUL .. "p" .. number -> a part of it, name .. NUL .. "n" -> the numbers (cmsgpack)
--        due      zset   name -> when the site may be activated
--        names    zset   name -> 0
--        ranks    zset   the sites in all orders, see `ranks.lua` -> 0
--        counts   hash   what `statistics` shows, and the counters that numbers come from
--        buckets  hash   bucket .. "p" | "s" -> crawled pages, sum of their last_crawled in ms
--        rows     hash   period:bucket:column -> what the census counted
--        copies   hash   repository:file -> page records that name it
--        barred   set    forgotten sites; site .. NUL .. page key
--        hurry    set    sites that may have immediate URLs waiting
--        log      hash   sequence -> an entry of the change log: its time (8), the rest as msgpack
--        life     hash   what a step knows a server by that was set back, see `guard.lua`
-- ARGV   one msgpack array, `A`

local A = cmsgpack.unpack(ARGV[1])
local call, get, put = redis.call, struct.unpack, struct.pack
local floor, sub, byte = math.floor, string.sub, string.byte
local INF = math.huge

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
