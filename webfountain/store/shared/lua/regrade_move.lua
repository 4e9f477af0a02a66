-- Move never-crawled URLs to the lanes of their new classes, each to its old turn, and note how far the epoch came.
-- A      { site, token, epoch, done, last lane, last order, { key, value as it was, new lane, new body }... }
-- Result false where the lease is lost, else how many moved
-- Atomic: what was leased, taken down or put first since it was read stays as it is.
-- Uses   fields counts sites leases places tree pages queues ranks finish
local name, token, epoch, done, lane, order = unpack(A, 1, 6)
local row = holds(name, token)
if not row then return finish(false) end
local moved = 0
for i = 7, #A do moved = moved + move_class(name, row, unpack(A[i])) end
if done then
  row.epoch, row.reg = epoch, nil
else
  row.reg = { epoch, lane, order }
end
touch(name)
return finish(moved)
