"""The crawler without Scrapy: choose what to fetch next, and process the results.

The two threads
---------------
The *loop thread* calls the facade (`frontier.Frontier`), which hands out fetches and receives their results. Each
result adds work to the open batch (`orders`). Each feature adds its own work (`stage`) before the batch (`batch`) goes
to the worker. The *worker thread* carries out one batch at a time (`worker.store_worker`). The worker writes bodies,
discovers links and settles leases, and only then takes new sites and leases. The loop thread applies the `BatchResult`.
The worker never changes a site, and the loop never calls the store. A third thread makes plans (`planning`), and a
fourth sends heartbeats (`cluster`). `assembly` and `worker_assembly` list the parts of both threads.

Life of a fetch
---------------
1. The store leases a URL to the hand of its site (`sites.site`). The site checks the URL once more against the policy
   and robots.txt, and does not request a refused URL.
2. `Frontier.next` takes the URL when politeness allows (`sites.sequencers`, `sites.politeness`). The fetch counts
   against the budget (`progress`).
3. `Frontier.landed` processes the end of the download. After the delay, the site and its address may be requested
   again.
4. `Frontier.examiner` determines what the answer means for the page (`pages.examiner`). The result is a `visit.Visit`.
5. `Frontier.finish` puts the visit into the batch. The body is written, the links are discovered
   (`duplicates.url_dedup`), and the visit is settled. If the process crashes before the visit is settled, the page is
   fetched again and nothing is lost.

Files such as robots.txt and sitemaps are downloaded without a lease, and then given to the site that needs them.

Other modules
-------------
`server_clock` corrects the clock, and `requests_by_url` finds the requests for a URL.
"""
