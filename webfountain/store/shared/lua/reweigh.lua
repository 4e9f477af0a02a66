-- Move never-crawled URLs to the lanes of their new classes, each to its old turn.
-- A      { site, token, { key, value as it was, new lane, new body }... }
-- Result false where the lease is lost, else how many moved
-- Atomic: what was leased, taken down or put first since it was read stays as it is.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local name, token = unpack(A, 1, 2)
local row = holds(name, token)
if not row then return finish(false) end
local moved = 0
for i = 3, #A do moved = moved + move_class(name, row, unpack(A[i])) end
touch(name)
return finish(moved)
