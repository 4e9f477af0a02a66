-- Answers that are used by several steps.

local function site_answer(name, row)
  local known = call('HMGET', SITES, name .. '\0s', name .. '\0l')
  return {
    name, text(time_of(row.due)), text(row.first), row.owner or false, row.imm, row.epoch, row.token or 0,
    text(row.owner and available(name, row) or 0), known[1] or '', known[2] or '', text(row.chg or 0), unpack(row.n),
  }
end
