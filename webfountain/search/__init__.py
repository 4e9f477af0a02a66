"""Full-text search over the copies: an index beside the store, kept up to date from the change log.

Life of an entry
----------------

The `follower` first reads the list of all texts, then the change log. The follower writes each batch of pages and the
cursor after the batch into the `search_index`, in one transaction. After a kill, the follower continues at the stored
cursor. `search_query` converts a person's words into a query of FTS5.

There is an index only if a user asks for one (`webfountain index`, `serve --search`). No part of a crawl depends on the
index.
"""
