"""The Python API: access to a collection from programs, and crawls without Scrapy.

Life of a collection in a program
---------------------------------

`opening` opens a store for reading, even while a crawl writes it, and returns a `collection`, sync or async. The
methods of a collection return `answers`, the same objects that the service sends as JSON. A named `reader` reads the
change log and keeps its place. Each entry is an instance of a class of `changes`. A program sends requests to the crawl
as `notes`. `crawling` starts a crawl as a child process. `leases` gives a frontier to the user's own crawler.
"""
