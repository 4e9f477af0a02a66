"""Full-text search over the copies: an index beside the store, kept up to date from the change log.

Life of an entry
----------------
The `follower` reads the whole list of texts once, then the change log, and writes each batch of pages, with the cursor
that follows it, into the `search_index` in one transaction. After a kill it continues at that cursor, so the index is
never ahead of its cursor or behind it. `search_query` converts the text that a person types into a query of FTS5.

There is no index unless a user asks for one (`webfountain index`, `serve --search`). No part of a crawl depends on it.
"""
