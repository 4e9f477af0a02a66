-- Write the name of a life into a shard, and when it began there, by the server's clock.
-- A      { name }
-- Result nothing
-- Atomic with nothing: the guards of the steps that follow read it.
-- Uses   era
local _, run_id = server_info()
call('HSET', LIFE, 'life', A[1], 'server', run_id, 'began', call('TIME')[1])
return false
