"""Virtual crawlers over recorded webs.

`revisit` replays a change `trace`. It compares policies with the same number of fetches per day (`rivals`,
`at_a_price`, `planned`) by their obsolete pages. `crawl_order` replays a link graph. It compares `orderings` by how
soon they find the hot pages. `urlcache` replays the links of a crawl through caches (`url_caches`).
"""
