-- The present era of a shard: its life on its present server. In LIFE: "server" -> run id of the server on which the last
-- site of the shard was taken, "began" -> when the era began, by the server's clock.

local function server_info()
  local info = redis.pcall('INFO', 'server')
  if info.err then error({ err = 'NOPERM this user may not call INFO, which shows whether the server was replaced' }) end
  return info, string.match(info, 'run_id:(%w+)')
end

-- The name of the era and when it began, nothing if the store began with it. In the first moments of an era somebody may
-- still use a site that is free here: the server that was replaced may have had newer steps that no process of now knows.
local function era()
  local info, run_id = server_info()
  local life, server, began = unpack(call('HMGET', LIFE, 'life', 'server', 'began'))
  began = began and tonumber(began)
  if server ~= run_id then
    -- A server that was started again lost its end before that, a replica that took over at some time until now.
    local was_replica = not string.find(call('INFO', 'replication'), 'master_replid2:0+%s')
    local up = was_replica and 0 or string.match(info, 'uptime_in_seconds:(%d+)')
    began = math.max(began or 0, call('TIME')[1] - up)
    call('HSET', LIFE, 'server', run_id, 'began', began)
  end
  return (life or '') .. sub(run_id, 1, 8), began
end
