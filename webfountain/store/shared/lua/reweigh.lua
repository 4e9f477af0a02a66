-- Move never-crawled URLs to the lanes of their new classes. Each URL keeps its arrival number.
-- A      { site, token, { key, value as it was read, new lane, new body }... }
-- Result false if the site lease is lost, else number of moved URLs
-- Atomic: a URL stays as it is if it was leased, forgotten or made immediate after it was read.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local name, token = unpack(A, 1, 2)
local row = holds(name, token)
if not row then return finish(false) end
local moved = 0
for i = 3, #A do moved = moved + move_class(name, row, unpack(A[i])) end
touch(name)
return finish(moved)
