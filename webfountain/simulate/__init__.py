"""Virtual crawls over what real sites did: which policy would have kept the copy freshest, without asking anybody.

Life of a replay. A record of a site's changes is cut into days (`rivals`). Each day a policy scores the known pages,
the best of them are fetched as far as the budget goes, the policy learns what these fetches found and nothing else, and
then the day's changes happen (`revisit`, which counts what is obsolete at each day's end). The policies: simple
rules, and oracles that know more than a crawler can (`rivals`); the model's plans, made by the crawl's own
`make_plan` (`revisit`); the crawl's own urgency of pages, also with a sitemap (`rivals` again).

Life of an ordering. A virtual crawler walks a recorded link graph from its start page and takes next what its ordering
says, until no known page is left; how early it meets the important ones is told by one curve (`ordering`). The links
it meets on its way pass through caches of URLs seen lately, which are compared by their misses (`ordering` again).
"""
