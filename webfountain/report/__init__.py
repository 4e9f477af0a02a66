"""What the commands show: the state of a crawl as words and tables for people, as plain data for programs.

Life of a number
----------------

The frontier counts it (`metrics`), or the store keeps it (census, records). During a crawl `progress` shows it; at the
end `end_summary` puts it into a sentence. `status`, `pages`, `texts`, `copy` and `plan` read it from the store
at any time. `explain` gives the reasons for a page's state. `wholeness` checks store and repository for damage.
"""
