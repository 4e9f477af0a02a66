-- Name the server that has the shard.
-- A      {}
-- Result the server's run id, which changes each time it starts
-- It only reads.
-- Uses   era
local _, run_id = server_info()
return run_id
