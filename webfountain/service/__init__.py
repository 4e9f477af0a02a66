"""The service: access to one or many stores over HTTP, in a separate process.

Life of a request
-----------------
`server` listens on loopback, on a Unix socket or, with tokens, on other addresses. `guards` refuse requests from
foreign pages or under foreign host names. `roles` define who may do what. An `operation` is a row of the `table`:
method, path, types of query, body and answer. The `application` routes by it, and `openapi` describes it. A read runs
in the thread of its `served_store`, which opens the store when it is available and reports when it is not. Errors are
`problems`. The `feeds` and their `streams` deliver news to waiting clients.

The service reads stores and leaves notes. No part of a crawl depends on it, and no lower room imports it.
"""
