"""The crawler without Scrapy: what to fetch next, what became of it, and the work between loop and worker thread.

The two threads. The *loop thread* calls the facade (`frontier.Frontier`): it hands out fetches, hears how they ended,
and gathers what the store must do in a `batch.Batch`. The *worker thread* carries one batch out at a time
(`store_worker`), in the order of durability: bodies written, links discovered, leases settled, then sites and leases
taken; the loop thread takes in the `BatchResult`. Nothing else is shared: a site is never touched by the worker, the
store never by the loop. Making a plan has a thread of its own (`planning`).

Life of a fetch.

1. The store leases a URL to the hand of its site (`sites.site`), where policy and robots.txt are asked
   once more; what they refuse ends there, unasked.
2. `Frontier.next` takes it when politeness allows: through the ring of addresses, the gate of its address, the gate of
   its site (`sites.politeness`, `sites.sequencer`). One page of the budget goes out (`progress`).
3. `Frontier.landed` gives the gates back: the site opens again after its delay, or backs off.
4. `Frontier.examine` finds out what the answer means for its page (`pages.examiner`), in any thread.
5. `Frontier.finish` puts that into the batch; it is settled after its body is written and its links are discovered
   (`pages.duplicates`). A crash before that repeats the fetch and loses nothing.

robots.txt and sitemaps have no lease: they live from 2 to 3, and then belong to the site that needed them.
"""
