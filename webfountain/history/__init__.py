"""The records of a crawl for later readers and for other processes.

Life of a figure
----------------
Every two seconds the crawl's loop takes a `live` snapshot of itself: counts, what limits its rate, and the reason why
each active site waits. `publishing` stores it where other processes can read it: in a file of the store's folder, or
with a claim on the store's server. Once a minute the `recorder` condenses the new counts into a `sample`. The `archive`
keeps the samples in the store: those of minutes for two days, of hours for ninety days, of days forever. Readers read
the snapshots and the samples from there, so they need no access to the crawl's memory.
"""
