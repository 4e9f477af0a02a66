"""The crawler without Scrapy: choose what to fetch next, and process the results.

The two threads
---------------
The *loop thread* calls the facade (`frontier.Frontier`), which hands out fetches and receives their results. These
events write into the open batch (`orders`). Each feature adds its order (`stage`), then the batch (`batch`) is sent to
the worker. The *worker thread* carries out one batch at a time (`worker.store_worker`). The worker writes bodies,
discovers links and settles leases, and only then takes new sites and leases. The loop thread applies the `BatchResult`.
The worker never changes a site, and the loop never calls the store. A third thread makes plans (`planning`), and a
fourth sends heartbeats (`cluster`). `assembly` and `worker_assembly` list the parts of both threads.

Life of a fetch
---------------
1. The store leases a URL to the hand of its site (`sites.site`). Policy and robots.txt are checked once more, and a
   refused URL ends without a request.
2. `Frontier.next` takes the URL when politeness allows (`sites.sequencers`, `sites.politeness`). One page of the budget
   is spent (`progress`).
3. `Frontier.landed` processes the end of the download. The gates of site and address open again after the delay.
4. `Frontier.examiner` determines what the answer means for the page (`pages.examiner`). The result is a `visit.Visit`.
5. `Frontier.finish` puts the visit into the batch. The body is written, the links are discovered
   (`duplicates.url_dedup`), and the visit is settled. A crash before the settle repeats the fetch and loses nothing.

Files such as robots.txt and sitemaps have no lease. A file is downloaded like a page, and then given to the site that
needed it.

Other modules
-------------
`server_clock` corrects the clock, and `requests_by_url` finds the keys of a URL and puts requests first. The other
packages are `cluster` (many ants), `inbox`, `pages`, `planning`, `sites` and `worker`.
"""
