"""The part of the crawler that runs in the worker thread.

Life of a batch
---------------
`store_worker` carries out a batch in the order of durability. First `settlement` settles leases: it writes the copies
of visited pages (`copies`), discovers their links and saves what was learned about sites. Then sites are parked. Then
sites are activated and pages are leased. Optional features do their part at each step. Each feature is a
`frontier.stage`; `frontier.worker_assembly` lists them. At the end, `copies` keeps the disk within its bounds, the
worker publishes what other processes need, and `stocktaking` reports what the store contains.
"""
