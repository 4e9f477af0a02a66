"""The reference store: plain dicts and sorted lists that end with the process.

`queues`, `pages` and `census` use the table in `sites`, which has one `site.MemorySite` per site. Several ants of one
process may share the store.
"""
