-- Tell the other processes that a site may be activated sooner in some shards than they know.
-- KEYS   one sorted set: shard -> number of the last time that it was told
-- A      { shard... }
-- Result nothing
-- Atomic: each number is given once, so who knows the last one has heard of all before it.
local last = tonumber(redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0)
for i, shard in ipairs(cmsgpack.unpack(ARGV[1])) do redis.call('ZADD', KEYS[1], last + i, shard) end
return false
