"""Thin adapters between Scrapy's engine and the frontier; the adapters make no decisions.

Life of a fetch
---------------
1. The `scheduler` requests the next fetch from the frontier and gives the engine a request (`own_crawl` or
   `project_requests`). A `Flight` is linked to that request.
2. The `downloader` passes the request through the downloader middlewares to the `download_handler`, which fetches over
   `webfountain.download`. The innermost of the `middlewares` lands the fetch. From that moment politeness counts the
   delay.
3. The spider has the fetch examined and yields an item.
4. When the engine is done with the request, in whatever way, the flight ends (`engine.connect_ends`). Verdict and
   links go to the worker thread as one batch (`worker_thread`). Both are in the store, and the items are in the feeds,
   before the page is settled.

The shared objects of a crawl are in its `session`, and `builder` builds the frontier. There are two kinds of crawls:
the `own_crawl` of a collection, and the `project_crawl` of a spider of a user's Scrapy project.

Requests of another project
---------------------------
The `addon` installs the adapters. A request passes the duplicate filter (`dupefilter`) and is stored as plain data
(`requests`, `values`); a request that is not plain data stays in memory (`memory_requests`). All requests pass the
steps above, and are acknowledged at the end. A request that the ant refuses ends in its errback (`flight`).

Other modules
-------------
Politeness and robots.txt of a project: `project_pace`, `project_robots`, `reactor_names`. Requests that were already
made: `project_requests`, `revisits`, `scrapy_redis`. Options: `new_items`, `session_cookies`, `start_urls`,
`item_safety`. Logs and figures: `reporter`, `recording`, `metrics_server`, `log_formatter`. The rest: `spider`,
`command`, `engine` (private parts of Scrapy), `process_memory`, `scrapyd_door` and `scrapyd_runner`.
"""
