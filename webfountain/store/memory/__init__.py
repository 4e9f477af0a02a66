"""The reference store: plain dicts and sorted lists that end with the process.

`queues`, `pages` and `census` share the table of `sites`, which contains a `site` for each site. Several ants of one
process may share the store.
"""
