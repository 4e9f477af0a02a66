"""Full-text search over the copies: an index beside the store, kept up to date from the change log.

Life of an entry
----------------
The `follower` reads the whole list of texts once, then the change log, and writes a batch of pages and the cursor after
them into the `search_index` in one transaction. After a kill it goes on at that cursor, so the index is never ahead of
its cursor, nor behind it. `search_query` converts what a person types to a query of FTS5.

There is no index unless a user asks for one (`webfountain index`, `serve --search`). No part of a crawl depends on it.
"""
