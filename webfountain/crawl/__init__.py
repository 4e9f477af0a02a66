"""Scrapy: thin adapters between its engine and the frontier. No decisions are made in this room.

Life of a fetch. The scheduler asks the frontier what may be asked now and gives the engine a request that carries
a `Flight`. The downloader passes it, through the downloader middlewares, to the download handler, whose `fetcher`
asks over a connection of `connection`, reads the answer by `http1` and unpacks it by `decoding`. The innermost
middleware lands it: politeness counts from there. The spider has it examined and yields an item. When the engine
is done with the request, whatever the end, the scheduler finishes the flight (`engine.watch_ends`): verdict and
links go to the `worker`'s thread as one batch, and are in the store before the page is settled.

A request of another project's spider (`addon`) enters through `enqueue_request`, is stored as plain data
(`shelf`), flies the same way and is acknowledged at its end; one that the ant refuses ends in its errback
(`settling`). There is no spider middleware: the engine tells
the end of every request, also of those that no spider middleware sees (errbacks, replaced requests).
"""
