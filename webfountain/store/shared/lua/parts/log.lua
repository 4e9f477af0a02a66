-- The change log of a shard.

-- Number and store an entry of the change log, if there is one.
local function note(entry)
  if entry then write(LOG, next_number('logged'), entry) end
end

-- Return the number of dropped entries of the change log, and the number of the newest entry.
local function log_bounds()
  local kept = call('HMGET', COUNTS, 'log_dropped', 'logged')
  return tonumber(kept[1] or 0), tonumber(kept[2] or 0)
end

local function logged_at(entry)
  return (get('>d', entry, 1))
end
