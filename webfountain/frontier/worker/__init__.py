"""The part of the crawler that runs in the worker thread.

Life of a batch
---------------
`store_worker` carries out a batch in the order of durability. First `settlement` settles leases: it writes the copies
of visited pages (`copies`), discovers their links and saves what was learned about sites. Then sites are parked and
activated, and pages are leased. Each optional feature is a `frontier.stage` with calls at these steps;
`frontier.worker_assembly` lists the stages. At the end, `copies` limits the disk space. The worker publishes values for
other processes, and it reports what the store contains.
"""
