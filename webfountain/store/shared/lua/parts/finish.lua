-- The end of a step.

-- Write all changes. Every step that changes something, even if only a count, ends with this call.
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
