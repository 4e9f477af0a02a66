"""What a crawl records about itself, for later readers and for other processes.

Life of a figure
----------------

Every two seconds the crawl's loop takes a `live` snapshot of itself: counts, what limits its rate, and why each active
site waits. `publishing` stores the snapshot for other processes: in a file of the store's folder, or with a claim on
the store's server. Once a minute the `recorder` turns the new counts into a `sample`. The `archive` keeps the samples
in the store: minutes for two days, hours for ninety days, days forever. Readers of snapshots and samples need no access
to the crawl's memory.
"""
