"""The crawler without Scrapy: choose what to fetch next, and process the results.

The two threads
---------------
The *loop thread* calls the facade (`frontier.Frontier`), which hands out fetches and receives their results. These
events write into the open batch (`orders`). Each feature adds its order (`stage`), then the batch (`batch`) goes out.
The *worker thread* carries out one batch at a time (`worker.store_worker`), in the order of durability: it writes
bodies, discovers links and settles leases, and only then takes new sites and leases. The loop thread applies the
`BatchResult`. The threads share nothing else: the worker never touches a site, and the loop never touches the store. A
third thread makes plans (`planning`), and a fourth sends heartbeats (`cluster`). `assembly` builds all of this and
lists the orders of the loop thread. `worker_assembly` lists the stages of the worker.

Life of a fetch
---------------
1. The store leases a URL to the hand of its site (`sites.site`). There policy and robots.txt are checked once more. A
   refused URL ends there without a request.
2. `Frontier.next` takes the URL when politeness allows: the ring of addresses chooses it, and the gates of its address
   and of its site let it pass (`sites.sequencers`, `sites.politeness`). One page of the budget is spent
   (`progress`).
3. `Frontier.landed` processes the end of the download. The gates of site and address open again after the delay, or
   later if the site must be left alone for longer.
4. `Frontier.examiner` determines, in any thread, what the answer means for its page (`pages.examiner`). The result is a
   `visit.Visit`.
5. `Frontier.finish` puts the visit into the batch. Its body is written, its links are discovered
   (`duplicates.url_dedup`), then it is settled. A crash before that repeats the fetch and loses nothing.

robots.txt and sitemaps have no lease. They pass steps 2 and 3, and then belong to the site that needed them.

Other modules
-------------
`orders` determines what is ordered with each batch, `server_clock` corrects the clock, `requests_by_url` finds the keys
of a URL and puts requests first. The other packages are `cluster` (many ants), `inbox`, `pages`, `planning`, `sites`
and `worker`.
"""
