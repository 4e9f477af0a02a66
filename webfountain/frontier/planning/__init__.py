"""Divide the budget: from the store's counts to the pages that are due, without rewriting a queue.

Life of a plan
--------------
The `planner` requests the store's census when a cycle ends. A pure function makes a plan from it (`make_plan`), in a
separate thread. The plan is stored (`plan`). Every ant follows the present plan (`plan_follower`): a `schedule`
determines which lanes of a site's recrawl queue are due, and how much of the budget is for new pages. The fetches made
are compared with the fetches planned. If an edited policy needs earlier visits, or a slower schedule would exceed the
intervals of a policy (`pages.review_stage`), `schedule` finds the pages, and `earlier_due_times` updates their sites.

Life of an urgent page
----------------------
Under `strategy = "fountain"`, the worker thread has the active sites in memory (`urgency_stage`, `urgent_pages`), and
some that left recently. A site begins from its records (`begin_site`) or continues from its saved
data (`kept_sites`). Its pages have numbers (`page_numbers`). It receives its visits (`urgent_site`) and is computed
together with other sites (`reckoning`), under conditions that are the same for all sites (`urgency_terms`). The result
shows which of its pages are worth the price of a fetch (`site_ranking`). These pages are made due. The price follows
the plan's budget (`core.fetch_price`): it rises and falls with the number of pages that are worth it (`page_supply`).
The budget also determines how often all this is done (`urgency_pace`). Of a very large site, one window of its pages
after the other is in memory (`site_windows`, `window_turns`). In addition, each bucket has an interval
(`urgency_schedule`). The beliefs about all sites give a forecast (`collection_forecast`), which the display of a crawl
uses (`freshness_estimate`).
"""
