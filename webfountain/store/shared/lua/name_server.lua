-- Let the era of a shard go on, on a server that cannot have replaced another beneath a process that still runs: the store
-- is new, or its server was started for the caller alone.
-- A      {}
-- Result nothing
-- Atomic with nothing: the steps that follow read it (`era.lua`).
-- Uses   era
local _, run_id = server_info()
call('HSET', LIFE, 'server', run_id)
return false
