"""What is told about a crawl: to people as words, tables and figures, to programs as plain data.

Life of a number
----------------
The frontier counts it (`metrics`) or the store keeps it (census, records). While the crawl runs, a `progress.Moment`
shows it; at its end `progress.summary` puts it into a sentence. Beside the crawl or after it, `state` reads it from
the store, and `evolution` turns the records into what a daily visitor would have seen and analyses that, which `plots`
draws. `findings` does the same for the optimisation model.
"""
