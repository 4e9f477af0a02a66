"""What is told about a crawl: to people as words, tables and figures, to programs as plain data.

Life of a number
----------------
The frontier counts it (`metrics`) or the store keeps it (census, records). While the crawl runs, a `progress.Moment`
shows it; at its end `summary` puts it into a sentence. Beside the crawl or after it, `state` and `planned` read it from
the store, and `histories` turns the records into what a daily visitor would have seen, which `evolution` analyses
and `plots` draws. `plans`, `findings` and `plots_plan` do the same for the optimisation model.
"""
