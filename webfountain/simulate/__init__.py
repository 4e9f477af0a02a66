"""Virtual crawls over what real sites did: which policy would have kept the copy freshest, without asking anybody.

Life of a replay. A record of a site's changes is cut into days (`trace`). Each day a policy scores the known pages, the
best of them are fetched as far as the budget goes, the policy learns what these fetches found and nothing else, and
then the day's changes happen (`revisit`, which counts what is obsolete at each day's end). The policies: simple
rules, and oracles that know more than a crawler can (`rivals`); the model's plans, made by the crawl's own
`make_plan` (`plans`); the crawl's own urgency of pages (`fountain`), also with a sitemap (`sitemap`).
"""
