"""Virtual crawlers on recorded webs.

`revisit` replays a change `trace` under policies with equal budgets (`rivals`, `at_a_price`, `planned`). `crawl_order`
replays a link graph under `orderings`. `cache_misses` sends the links of a crawl through caches (`url_caches`).
"""
