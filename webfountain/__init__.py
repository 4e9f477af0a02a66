"""webfountain: an incremental crawler that keeps a fresh copy of chosen parts of the web.

Life of the package, lowest floor first: the *words* (errors, records, clock, urls, config, metrics),
then ``core`` (mathematics), ``policy``, ``store``, ``repository``, then ``frontier`` (the crawler without
Scrapy), then ``crawl`` (Scrapy's adapters), ``simulate``, ``report`` and ``demo``, then the doors ``cli`` and
``settings``. An import never goes up.
"""

__version__ = "1.0.0"
