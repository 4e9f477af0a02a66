-- The end of a step.

-- Write what changed; the last call of every step that changes something, also where it only counted.
local function finish(answer)
  for row in pairs(ended) do without_ended(row) end
  for name in pairs(changed) do
    if rows[name] then
      list_site(name, rows[name])
      write(SITES, name, cmsgpack.pack(rows[name]))
    end
  end
  write_counts()
  for hash, names in pairs(written) do write_out(hash, names) end
  return answer
end
