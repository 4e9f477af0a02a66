-- The change log of a shard.

-- Number and keep an entry of the change log, where there is one.
local function note(entry)
  if entry then write(LOG, next_number('logged'), entry) end
end

-- Of the change log: how many entries went, and the number of the newest.
local function log_bounds()
  local kept = call('HMGET', COUNTS, 'log_dropped', 'logged')
  return tonumber(kept[1] or 0), tonumber(kept[2] or 0)
end

local function logged_at(entry)
  return (get('>d', entry, 1))
end
