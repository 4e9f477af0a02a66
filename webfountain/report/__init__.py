"""What the commands show: the state of a crawl as words and tables for people, as plain data for programs.

Life of a number
----------------
The frontier counts it (`metrics`) or the store keeps it (census, records). During a crawl a `progress.Moment` shows it;
at the end `summary` puts it into a sentence. During a crawl or after it, `status`, `pages`, `texts`, `changes`, `copy`
and `plan` read it from the store, `explain` gives the reasons for a page's state, and `wholeness` checks the store and
the repository for damage.
"""
