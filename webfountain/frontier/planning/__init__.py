"""Divide the budget: from the store's counts to the pages that are due, without rewriting a queue.

Life of a plan
--------------
The `planner` requests the store's census when a cycle ends. A pure function makes a plan from it (`make_plan`), in a
separate thread. The plan is stored (`plan`). Every ant follows the current plan (`plan_follower`): a `schedule`
determines which lanes of a site's recrawl queue are due, and how much of the budget is for new pages. The number of
fetches made is compared with the number planned. Pages may have to be visited earlier after an edit of a policy, or
when a slower schedule would exceed a policy's intervals (`pages.review_stage`). Then `schedule` finds these pages, and
`earlier_due_times` updates their sites.

Life of an urgent page
----------------------
Under `strategy = "fountain"`, the worker thread has the active sites in
memory (`urgent_pages`), and some sites that left recently. The state of a site is computed from its
records or decoded from its saved data (`kept_sites`). Its pages have numbers (`page_numbers`). Results of visits are
added to it (`urgent_site`). Its urgencies are computed together with those of other sites (`reckoning`), under
conditions that are the same for all sites (`urgency_terms`). The result shows which of its pages are worth the price of
a fetch (`site_ranking`). These pages are made due. The price follows the plan's budget (`core.fetch_price`): it rises
and falls with the number of pages that are worth it (`page_supply`). The budget also determines how often all this is
done. The pages of a very large site are in memory one window at a time (`site_windows`). In addition,
each bucket has an interval after which its pages are due in any case (`schedule`). The beliefs about all sites give a
forecast (`collection_forecast`), which the display of a crawl uses.
"""
