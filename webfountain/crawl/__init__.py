"""Scrapy: thin adapters between its engine and the frontier. No decisions are made in this room.

Life of a fetch. The scheduler asks the frontier what may be asked now and gives the engine a request, beside which
lies a `Flight`. The downloader passes it, through the downloader middlewares, to the download handler, which asks over
`webfountain.download`. The innermost middleware lands it: politeness counts from there. The spider has it examined and
yields an item. When the engine is done with the request, whatever the end, the scheduler ends the flight
(`engine.connect_ends`): verdict and links go to the worker thread as one batch, and are in the store, and items in the
feeds, before the page is settled. What the parts of a crawl share is its `session`.

A request of another project's spider (`addon`) passes the duplicate filter, is stored as plain data
(`requests`), flies the same way and is acknowledged at its end; one that the ant refuses ends in its errback
(`flight`). There is no spider middleware: the engine tells the end of every request, also of those that no spider
middleware sees (errbacks, replaced requests).
"""
