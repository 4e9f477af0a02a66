"""The embedded store: a frontier in one folder, without a server. It uses RocksDB and has one writer.

Life of a step
--------------
A caller calls a method of one part of the store (`queues`, `sites`, `pages`, `board`), with site leases as arguments.
The tokens are compared in memory (`leases`): a step with a lost token writes nothing. The rest is collected in one
write batch (`steps`): records with their queue entries (`page_rows`), sites (`site_rows`, `site_ranks`), `counts`,
entries of the change log (`change_log`). The batch is written completely or not at all (`disk`). After that, the leases
and fronts in memory are updated (`site_queues`). If a process dies between two batches, the store on disk is
consistent: leases are never on disk, and the sites of the active list become due again when the store is opened next
(`opening`).

Each family of keys begins with its own byte, and the keys of a site are adjacent within it (`keys`). So the pages of a
site are read from one place on disk, and so is each of its queues, in order. `maintenance`, `transfer` and `salvage`
read a whole store. `side_files` show at the next opening whether a part of the store was lost.
"""
