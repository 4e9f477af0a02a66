"""The service: access to one or many stores over HTTP, in a separate process.

Life of a request
-----------------

`server` listens on loopback, on a Unix socket or, with tokens, on other addresses. `guards` refuse requests from
foreign pages or under foreign host names. `roles` define who may do what.

The `table` has one `operation` for each URL: method, path, and types of query, body and answer. The `application`
routes requests by the table, and `openapi` describes it. A read runs in the thread of its `served_store`, which opens
the store when it is available. Errors are `problems`. The `feeds` and their `streams` deliver news to waiting clients.

The service reads stores and leaves notes. No part of a crawl depends on the service.
"""
