"""Mathematics of the crawler: functions from arrays to arrays.

Life of a change rate
---------------------
A page is fetched again. Its text is compared with our copy (`change`, by `shingles`). The check is added to the page's
history. A mean change interval is estimated from the history (`change_rate`) and rounded to one byte (`buckets`). A
`census` of these bytes gives the constants of the model of Edwards 2001 (`model`). The optimiser divides the budget
(`optimizer`, with `calendars`). Three things are computed from its plan: quotas in whole pages (`quotas`), clocks that
give the next visit of each bucket (`phases`), and a forecast of the obsolete pages (`model`).

Life of an urgency
------------------
Pages are not independent: the pages of a directory (`sections`) change together. The fetches of a site show how active
each of its directories is (`activity`). This determines the urgency of each page: how much freshness a fetch now gains
(`urgency`, `site_urgency`). The urgency is weighted by the page's importance (`importance`, `pagerank`). A page is
fetched when its urgency reaches the price (`fetch_price`).
"""
