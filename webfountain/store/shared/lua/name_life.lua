-- Write the name of a life into a shard, and when it began there, by the server's clock.
-- A      { name }
-- Result nothing
-- Atomic with nothing: the guards of the steps that follow read it.
-- Uses   base
call('HSET', LIFE, 'life', A[1], 'began', call('TIME')[1])
return false
