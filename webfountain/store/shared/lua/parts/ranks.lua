-- The orders of the sites of a shard. RANKS has a member for each site and order: a letter, eight bytes that sort in
-- that order (`store/site_orders.py`), the name. In a row, `rk` contains the values from which its members were made,
-- and `chg` the time of the site's newest entry in the change log.

local MOST = 2 ^ 53

local function rank_values(row)
  local n = row.n
  local due = row.owner and 0 or math.max(time_of(row.due), 0)
  return { n[1] + n[2] + n[3] + n[4] + n[5] + n[6], keep(due), n[6], floor(math.min(math.max(row.chg or 0, 0) * 1000, MOST)) }
end

local function rank_members(name, values)
  return {
    'p' .. put('>I8', MOST - values[1]) .. name, 'd' .. put('>d', time_of(values[2])) .. name,
    'f' .. put('>I8', MOST - values[3]) .. name, 'c' .. put('>I8', MOST - values[4]) .. name,
  }
end

-- Put a site at the positions that its row defines.
local function list_site(name, row)
  local now, before = rank_values(row), row.rk
  local old, gone, sent = before and rank_members(name, before), {}, {}
  for i, member in ipairs(rank_members(name, now)) do
    if not old or old[i] ~= member then
      if old then gone[#gone + 1] = old[i] end
      sent[#sent + 1] = 0
      sent[#sent + 1] = member
    end
  end
  if #gone > 0 then call('ZREM', RANKS, unpack(gone)) end
  if #sent > 0 then
    call('ZADD', RANKS, unpack(sent))
    row.rk = now
  end
end

local function unlist_site(name, row)
  if row.rk then call('ZREM', RANKS, unpack(rank_members(name, row.rk))) end
end

-- Note the time of an entry in the change log for its site.
local function note_change(row, entry)
  if entry then row.chg = math.max(row.chg or 0, (get('>d', entry, 1))) end
end
