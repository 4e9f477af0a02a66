"""Settings of ``scrapy crawl fountain``, chosen for a crawl of millions of pages; a door, nothing is decided here.

Built-in components that only cost time here are off: the frontier does their work (offsite, robots.txt, depth,
URL length, duplicates), the download handler does (compression, timeout, user agent), or a crawl has no use for
them (cookies, HTTP authentication, referer). The WEBFOUNTAIN_* settings are in `webfountain.config`.

REMOTE_CONTROL_ENABLED is off: Scrapy 2.19 starts by default a server on loopback that runs any Python it is sent,
guarded by a token file. `webfountain now`, `status` and `forget` do what an operator needs without it.
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
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": None,
    "webfountain.crawl.downloader_middlewares.LandingMiddleware": 999,
}
SPIDER_MIDDLEWARES = {
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
}
EXTENSIONS = {
    "webfountain.crawl.extensions.Reporter": 0,
    "scrapy.extensions.telnet.TelnetConsole": None,
    "scrapy.extensions.memusage.MemoryUsage": None,
    "scrapy.extensions.logstats.LogStats": None,
    "scrapy.extensions.spiderstate.SpiderState": None,
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.remote_control.RemoteControl": None,
}
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

CONCURRENT_REQUESTS = 512
CONCURRENT_REQUESTS_PER_DOMAIN = 512
CONCURRENT_ITEMS = 1
DOWNLOAD_DELAY = 0
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 32_000_000
ROBOTSTXT_OBEY = False  # the ant asks robots.txt, by RFC 9309; Scrapy's middleware takes 5xx for "allow"
WARN_ON_GENERATOR_RETURN_VALUE = False
FEED_EXPORT_ENCODING = "utf-8"
LOG_LEVEL = "INFO"
STATS_DUMP = False
