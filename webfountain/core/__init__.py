"""The mathematics: arrays in, arrays out. No I/O, no clock, no settings, no logging; it runs in a notebook.

Life of a change rate. A page is fetched again and its text compared with our copy (`resemblance`); the check goes into
the page's history, from which a mean change interval is estimated (`change_rate`) and rounded to one byte (`buckets`).
A census of these bytes measures the constants of the model of Edwards 2001 (`model`); the optimiser divides the budget
(`optimizer`, with `calendars`), and what it found becomes whole pages, clocks that say when a bucket's next visit is
due, and a forecast of what will be obsolete (`buckets` again).

Life of an urgency. Pages are not independent: those of a directory change together. A site's fetches teach how active
each of its directories is (`site_urgency`, `activity`), and from that how much freshness a fetch of each page would
buy now, in the measure of its importance (`rank`), and at what price it is made.
"""
