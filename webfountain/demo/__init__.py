"""A web on loopback that changes over time, and the server that speaks HTTP for it.

`web.py` generates it, `server.py` serves it, in a process beside a crawl that is asked for
the truth. Nothing here takes part in a crawl.
"""
