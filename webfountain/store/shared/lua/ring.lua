-- Signal to other processes that a site in some shards may be activated sooner than they know.
-- KEYS   one sorted set: shard -> number of its last signal
-- A      { shard... }
-- Result nothing
-- Atomic: each number is given once, so a process that knows the last number has received all signals before it.
-- Numbers are never below the server's clock. Otherwise a server that was set back would repeat numbers that processes
-- have passed.
local clock = redis.call('TIME')
local last = tonumber(redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0)
last = math.max(last, clock[1] * 1000000 + clock[2])
for i, shard in ipairs(cmsgpack.unpack(ARGV[1])) do redis.call('ZADD', KEYS[1], last + i, shard) end
return false
