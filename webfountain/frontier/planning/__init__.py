"""Decide which known pages are fetched again, and when, within the budget of fetches.

Life of a plan
--------------
The `planner` requests the store's census when a cycle ends. `make_plan` makes a plan from the census, in a separate
thread, and `plan` stores the plan. Every ant follows the current plan (`plan_follower`). A `schedule` determines which
pages of a site are due, and how much of the budget is for new pages. After an edit of a policy, pages may have to be
visited earlier (`pages.review_stage`). Then `schedule` finds these pages, and `earlier_due_times` updates their sites.

Life of an urgent page
----------------------
Under `strategy = "fountain"`, the worker thread has the active sites in memory (`urgent_pages`), and some sites that
left recently. A site is made from its records or from its saved data (`kept_sites`), with a number for each page
(`page_numbers`). An `urgent_site` receives the results of visits. The urgencies of many sites are computed together
(`reckoning`), under the same terms (`urgency_terms`). The result shows which pages are worth the price of a fetch
(`site_ranking`). These pages are made due. The price follows the plan's budget (`core.fetch_price`) and the number of
pages that are worth the price (`page_supply`). The pages of a very large site are in memory one window at a time
(`site_windows`). Each bucket also has an interval after which its pages are due in any case (`schedule`). The beliefs
about all sites give a forecast (`collection_forecast`), which the display of a crawl uses.
"""
