-- The current era of a shard: its life on its current server. In LIFE: "server" -> run id of the server on which the
-- last site of the shard was taken, "began" -> when the era began, by the server's clock.

local function server_info()
  local info = redis.pcall('INFO', 'server')
  if info.err then error({ err = 'NOPERM this user may not call INFO, which shows whether the server was replaced' }) end
  return info, string.match(info, 'run_id:(%w+)')
end

-- Return the name of the era and when it began (nil if the store began with it). At the beginning of an era, a process
-- may still use a site that is free here: the replaced server may have had newer steps, of which the current one knows
-- nothing.
local function era()
  local info, run_id = server_info()
  local life, server, began = unpack(call('HMGET', LIFE, 'life', 'server', 'began'))
  began = began and tonumber(began)
  if server ~= run_id then
    -- A server that was restarted lost its latest steps before its start. A replica may have taken over at any time
    -- until now.
    local was_replica = not string.find(call('INFO', 'replication'), 'master_replid2:0+%s')
    local up = was_replica and 0 or string.match(info, 'uptime_in_seconds:(%d+)')
    began = math.max(began or 0, call('TIME')[1] - up)
    call('HSET', LIFE, 'server', run_id, 'began', began)
  end
  return (life or '') .. sub(run_id, 1, 8), began
end
