-- Refuse a step in a shard that was set back. This text is put before each step that changes something.
-- ARGV   after the step's own arguments: name of the life that the process knows; name of the process; number of its
--        last step that this shard answered, 0 for none; number of this step (milliseconds, always greater than the
--        last)
-- LIFE   hash: "life" -> name of the life, process -> number of its last step here, "server" and "began" -> see
--        `era.lua`, "trimmed" -> see log_trim.lua
-- Result an error if the shard does not know the process's last step, or has another life; then nothing was changed
-- Atomic with the step; otherwise a server could be replaced between the two.
do
  local life, mark = unpack(call('HMGET', LIFE, 'life', ARGV[3]))
  local last, number = tonumber(mark or 0), tonumber(ARGV[5])
  if last < tonumber(ARGV[4]) then return redis.error_reply('SETBACK ' .. (mark or 0)) end
  if life and life ~= ARGV[2] then return redis.error_reply('NEWLIFE ' .. life) end
  if mark then
    if number > last then call('HSET', LIFE, ARGV[3], ARGV[5]) end
  else
    if call('HLEN', LIFE) > 64 then
      -- Drop the marks of dead processes: a live process that was silent for two hours does not rely on its mark.
      local all = call('HGETALL', LIFE)
      for i = 1, #all, 2 do
        local its = tonumber(all[i + 1])
        local is_mark = #all[i] == 8
        if is_mark and its and its < number - 7200000 then call('HDEL', LIFE, all[i]) end
      end
    end
    call('HSET', LIFE, 'life', ARGV[2], ARGV[3], ARGV[5])
  end
end
