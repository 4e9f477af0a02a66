"""A web on loopback that changes over time, and the server that speaks HTTP for it.

`web.py` and `site.py` generate it, `server.py` serves it, `process.py` runs it beside a crawl and asks it for
the truth. Nothing here takes part in a crawl.
"""
