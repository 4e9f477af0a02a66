-- The time of a shard's latest step. When a store is opened, this time is compared with the clock.

-- In whole seconds, and not written by every step, because it is compared with a tolerance of a minute.
local function note_time(at)
  if at - 1 >= tonumber(fetch(COUNTS, 'latest') or 0) then write(COUNTS, 'latest', floor(at)) end
end
