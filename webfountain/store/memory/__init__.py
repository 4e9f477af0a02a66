"""The reference store: plain dicts and sorted lists that end with the process.

`store` combines its parts. `queues`, `pages` and `census` use the table of `sites` (a `site` for each). `change_log`
and the published values have their own data. Several ants of one process may share the store.
"""
