-- Write the name of a life into a shard, with the time at which it began there, by the server's clock.
-- A      { name }
-- Result nothing
-- It need not be atomic with anything: the guards of the steps that follow read the name.
-- Uses   era
local _, run_id = server_info()
call('HSET', LIFE, 'life', A[1], 'server', run_id, 'began', call('TIME')[1])
return false
