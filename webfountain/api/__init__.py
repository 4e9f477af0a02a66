"""The Python API: programs read a collection, send requests to its crawl, or crawl without Scrapy.

Life of a collection in a program
---------------------------------

`opening` opens a store for reading, even while a crawl writes it, and returns a `collection`, sync or async. The
methods of a collection return `answers`, the same objects that the service sends as JSON. A named `reader` continues in
the change log where it last stopped. `changes` has a class for each kind of change-log entry. A program sends requests
to the crawl as `notes`. `crawling` starts a crawl as a child process. With `leases`, a user's own crawler takes its
URLs from a frontier.
"""
