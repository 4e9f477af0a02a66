"""The part of the crawler that runs in the worker thread.

Life of a batch
---------------
`store_worker` carries out a batch in the order of durability. First `settlement` settles leases: it writes the copies
of visited pages (`copies`), discovers their links (`discovery`) and saves what was learned about sites
(`learned_sites`). Then sites are parked. Then `leasing` activates sites and leases pages. Optional features do their
part at each step. Each feature is a `stage`; `frontier.worker_assembly` lists them. At the end, the
worker publishes what other processes need, `housekeeping` keeps the disk within its bounds, and `stocktaking` reports
what the store contains. If an item raises an unexpected error, `item_by_item` repeats the step without that item.
"""
