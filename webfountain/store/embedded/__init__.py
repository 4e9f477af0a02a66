"""The embedded store: a frontier in one folder, on RocksDB, with one writer and without a server.

Life of a step
--------------
A caller calls a method of one part of the store (`queues`, `sites`, `pages`, `board`), with site leases as arguments.
Their tokens are compared in memory (`leases`): a step with a lost token writes nothing. All changes are collected in
one write batch (`steps`): records with their queue entries (`page_rows`), sites (`site_rows`, `site_ranks`), `counts`,
and entries of the change log (`change_log`). The batch is written completely or not at all (`disk`). Then the leases
and the fronts of queues in memory are updated (`site_queues`). Leases are never on disk, so the store is consistent
after a crash. The next opening makes the sites of the active list due again (`opening`).

Each family of keys begins with its own byte, and the keys of a site are adjacent within the family (`keys`). The pages
of a site are stored together on disk, and so are the entries of each queue. `maintenance`, `transfer` and `salvage`
process a whole store. When a store is opened, `side_files` shows whether a part of the store was lost.
"""
