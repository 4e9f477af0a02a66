-- The time of a shard's latest step: an opening compares it with its clock.

-- Whole seconds, and seldom written: they are compared with a tolerance of a minute.
local function note_time(at)
  if at - 1 >= tonumber(fetch(COUNTS, 'latest') or 0) then write(COUNTS, 'latest', floor(at)) end
end
