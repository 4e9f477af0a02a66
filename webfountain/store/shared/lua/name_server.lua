-- Continue the era of a shard on its current server. The caller knows that no running process used an earlier server:
-- the store is new, or the server was started for the caller alone.
-- A      {}
-- Result nothing
-- It need not be atomic with anything: the steps that follow read the name (`era.lua`).
-- Uses   era
local _, run_id = server_info()
call('HSET', LIFE, 'server', run_id)
return false
