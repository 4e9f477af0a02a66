"""Scrapy's settings for ``scrapy crawl fountain``, chosen for a crawl of millions of pages.

Scrapy's components for offsite links, robots.txt, depth, URL length and duplicates are switched off, because the
frontier does this work. The components for compression, timeouts and the User-Agent are switched off, because the
download handler does this work. Switched-off components are removed from Scrapy's ``*_BASE`` settings. Scrapy would
still import a component that is only set to None; such imports took a fifth of the CPU time at the start of a crawl.

REMOTE_CONTROL_ENABLED is off; otherwise, Scrapy 2.19 starts a server on loopback that runs any Python code
sent to it.
"""

from __future__ import annotations

BOT_NAME = "webfountain"
SPIDER_MODULES = ["webfountain.crawl.spider"]
ADDONS: dict[str, int] = {}

SCHEDULER = "webfountain.crawl.scheduler.FountainScheduler"
DOWNLOADER = "webfountain.crawl.downloader.FountainDownloader"
LOG_FORMATTER = "webfountain.crawl.log_formatter.FountainLogFormatter"
DOWNLOAD_HANDLERS = {
    "http": "webfountain.crawl.download_handler.FountainDownloadHandler",
    "https": "webfountain.crawl.download_handler.FountainDownloadHandler",
    "ftp": None,
    "s3": None,
    "data": None,
    "file": None,
}
DOWNLOADER_MIDDLEWARES_BASE: dict[str, int] = {}
DOWNLOADER_MIDDLEWARES = {"webfountain.crawl.middlewares.LandingMiddleware": 999}
SPIDER_MIDDLEWARES_BASE: dict[str, int] = {}
EXTENSIONS_BASE = {
    "scrapy.extensions.corestats.CoreStats": 0,
    "scrapy.extensions.logcount.LogCount": 0,
    "scrapy.extensions.memdebug.MemoryDebugger": 0,
    "scrapy.extensions.closespider.CloseSpider": 0,
    "scrapy.extensions.feedexport.FeedExporter": 0,
}
EXTENSIONS = {
    "webfountain.crawl.reporter.Reporter": 0,
    "webfountain.crawl.recording.Recording": 0,
    "webfountain.crawl.metrics_server.MetricsServer": 0,
}
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

CONCURRENT_REQUESTS = 512
CONCURRENT_REQUESTS_PER_DOMAIN = 512
CONCURRENT_ITEMS = 1
DOWNLOAD_DELAY = 0
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 32_000_000
ROBOTSTXT_OBEY = False  # the ant checks robots.txt by RFC 9309; Scrapy's middleware treats 5xx as "allow"
WARN_ON_GENERATOR_RETURN_VALUE = False
FEED_EXPORT_ENCODING = "utf-8"
LOG_LEVEL = "INFO"
STATS_DUMP = False
