"""The mathematics: arrays in, arrays out. No I/O, no clock, no settings, no logging; it runs in a notebook.

Life of a change rate. A page is fetched again and its text compared with our copy (`shingles`, `change`); the check
goes into the page's history, from which a mean change interval is estimated (`change_rate`) and rounded to one byte
(`buckets`). A census of these bytes measures the constants of the model of Edwards 2001 (`census`, `model`,
`instances`, `strategies`); the optimiser divides the budget (`optimizer`, with `calendars` and `working_set`), and
what it found becomes whole pages (`quotas`), clocks that say when a bucket's next visit is due (`phases`), and a
forecast of what will be obsolete (`forecast`).

Life of an urgency. Pages are not independent: those of a directory change together. A site's fetches teach how active
each of its directories is (`site_urgency`, `activity`, `sections`, `rhythm`, with what `signals` switches on), and from
that how much freshness a fetch of each page would buy now (`urgency`, `importance`). How fresh all is believed to be
is told by `freshness`.
"""
