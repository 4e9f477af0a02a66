"""The reference store: plain dicts and sorted lists that end with the process.

`store` combines its parts. `queues`, `sites`, `pages` and `census` use one table of sites (`table`, with a `site` for
each). `change_log` and `board` have their own data. `claims` are for several ants in one process.
"""
