"""The service: access to one or many stores over HTTP, in a separate process.

Life of a request
-----------------

`server` listens on loopback, on a Unix socket or, with tokens, on other addresses. `guards` refuse requests that a web
page of another site sends, and requests for an unknown host name. `roles` defines what each client may do.

The `table` has one `operation` for each URL: method, path, and types of query, body and answer. The `application`
routes requests to operations, and `openapi` describes the operations. Each store has a `served_store` with a thread of
its own, which opens the store and runs all calls on it. `problems` turns errors into answers. The `feeds` and their
`streams` send new changes and live snapshots to waiting clients.

The service reads stores and sends requests to the crawl. No part of a crawl depends on the service.
"""
