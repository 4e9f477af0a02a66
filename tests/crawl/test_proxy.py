"""A project's request with a proxy takes Scrapy's own download handler, and lands and ends like any other."""

from __future__ import annotations

import base64
import socket
from typing import TYPE_CHECKING

from tests.crawl.projects import Answer, Project, Site

if TYPE_CHECKING:
    from pathlib import Path

SPIDER = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self.base + "/direct", errback=self.failed)
            yield scrapy.Request(self.base + "/through", errback=self.failed, meta={"proxy": self.proxy})
            yield scrapy.Request(self.base + "/dead", errback=self.failed,
                                 meta={"proxy": self.dead, "dont_retry": True})
        def parse(self, response):
            yield {"url": response.url, "said": response.text, "latency": response.meta["download_latency"] > 0}
        def failed(self, failure):
            yield {"url": failure.request.url, "error": failure.type.__name__}
"""


def test_a_request_goes_through_its_proxy_and_the_others_past_it(tmp_path: Path) -> None:
    project = Project(tmp_path, SPIDER)
    with (
        Site(lambda asked: Answer(f"site {asked.path}")) as site,
        Site(lambda asked: Answer(f"proxy {asked.path}")) as proxy,
        socket.socket() as deaf,
    ):
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        dead = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        through = proxy.base.replace("http://", "http://me:secret@")
        log = project.crawl("theirs", base=site.base, proxy=through, dead=dead)
    assert site.paths == ["/direct"]
    assert proxy.paths == [site.base + "/through"]  # the absolute form, that only a proxy is sent
    credentials = base64.b64encode(b"me:secret").decode()
    assert proxy.asked[0].headers["proxy-authorization"] == f"Basic {credentials}"
    assert "proxy-authorization" not in site.asked[0].headers
    items = {item.pop("url").removeprefix(site.base): item for item in project.items}
    assert items == {
        "/direct": {"said": "site /direct", "latency": True},
        "/through": {"said": f"proxy {site.base}/through", "latency": True},
        "/dead": {"error": "DownloadConnectionRefusedError"},
    }
    assert "'ant/settled': 3" in log
    assert "'outcome/new': 2" in log
    assert "'outcome/failed': 1" in log
    assert len(project.items) == 3
