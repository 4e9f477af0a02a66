"""Virtual crawlers over recorded webs.

`revisit` replays a change `trace` and compares the obsolete pages of policies (`rivals`, `at_a_price`, `planned`) with
equal budgets. `crawl_order` replays a link graph and compares how soon `orderings` find the hot pages. `urlcache` sends
the links of a crawl through caches (`url_caches`).
"""
