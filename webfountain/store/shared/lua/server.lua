-- Name the server that has the shard.
-- A      {}
-- Result its run id, which changes when it starts
-- Reads only.
-- Uses   era
local _, run_id = server_info()
return run_id
