-- Tell the other processes that a site may be activated sooner in some shards than they know.
-- KEYS   one sorted set: shard -> number of the last time that it was told
-- A      { shard... }
-- Result nothing
-- Atomic: each number is given once, so who knows the last one has heard of all before it. Not before the server's clock,
-- or one that was set back would give numbers that others have passed already.
local clock = redis.call('TIME')
local last = tonumber(redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0)
last = math.max(last, clock[1] * 1000000 + clock[2])
for i, shard in ipairs(cmsgpack.unpack(ARGV[1])) do redis.call('ZADD', KEYS[1], last + i, shard) end
return false
