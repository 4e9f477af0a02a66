"""The records of a crawl for later readers and for other processes.

Life of a figure
----------------
Every two seconds the crawl's loop takes a `live` snapshot of itself: counts, the limit of its rate, the reason why each
active site waits. `publishing` stores it where other processes can read it: in a file of the store's folder, or with a
claim on the store's server. Once a minute the `recorder` condenses the new counts into a `sample`. The `archive` keeps
it in the store: minutes for two days, hours for ninety days, days forever. Readers take both from there and need no
access to the crawl's memory. The crawl needs no reader.
"""
