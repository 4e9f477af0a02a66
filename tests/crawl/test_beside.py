"""What Scrapy downloads beside the frontier, files of a media pipeline above all, keeps the project's politeness."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from pathlib import Path

FILES = 8
SPIDER = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self.base + "/list")
        def parse(self, response):
            for n in range(2):
                urls = [f"{self.base}/file/{n}/{i}" for i in range(4)]
                yield {"n": n, "file_urls": urls + ([self.base + "/closed/file"] if n else [])}
"""
PIPELINE = """
ITEM_PIPELINES = {"scrapy.pipelines.files.FilesPipeline": 1}
FILES_STORE = "files"
"""


class Crowd:
    """A site's answers, which take a while, and how many of one kind were under way at once."""

    def __init__(self) -> None:
        self.most = 0
        self.began: list[float] = []
        self._now = 0
        self._lock = threading.Lock()

    def answer(self, asked: ReceivedRequest) -> Answer:
        if not asked.path.startswith("/file"):
            return Answer("<p>list</p>")
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.began.append(time.monotonic())
        time.sleep(0.03)
        with self._lock:
            self._now -= 1
        return Answer(asked.path)


def test_files_come_one_at_a_time_and_with_the_delay_where_the_project_says_so(tmp_path: Path) -> None:
    crowd = Crowd()
    settings = PIPELINE + "CONCURRENT_REQUESTS_PER_DOMAIN = 1\nDOWNLOAD_DELAY = 0.1\nDOWNLOAD_DELAY_JITTER = 0\n"
    project = Project(tmp_path, SPIDER, settings=settings)
    with Site(crowd.answer) as site:
        project.crawl("theirs", base=site.base)
    assert [len(item["files"]) for item in sorted(project.items, key=lambda item: item["n"])] == [4, 5]
    assert crowd.most == 1
    began = sorted(crowd.began)
    assert len(began) == FILES
    assert began[-1] - began[0] > 0.05 * (FILES - 1)  # the first may have come late


def test_files_of_several_items_come_at_once_where_the_project_lets_them(tmp_path: Path) -> None:
    crowd = Crowd()
    project = Project(tmp_path, SPIDER, settings=PIPELINE)
    with Site(crowd.answer) as site:
        project.crawl("theirs", base=site.base)
    assert crowd.most > 1


def test_files_that_robots_txt_refuses_are_not_asked_for_where_the_project_obeys(tmp_path: Path) -> None:
    crowd = Crowd()
    project = Project(tmp_path, SPIDER, settings=PIPELINE + "ROBOTSTXT_OBEY = True\n")
    with Site(crowd.answer, robots="User-agent: *\nDisallow: /closed\n") as site:
        log = project.crawl("theirs", base=site.base)
    assert "/closed/file" not in site.paths
    assert sorted(len(item["files"]) for item in project.items) == [4, 4]
    assert "'robotstxt/forbidden': 1" in log
    assert [asked.path for asked in site.asked].count("/robots.txt") == 1, "the ant's serves the files too"


def test_a_request_of_a_slot_with_rules_of_its_own_keeps_them(tmp_path: Path) -> None:
    crowd = Crowd()
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for i in range(4):
                    yield scrapy.Request(f"{self.base}/file/{i}", meta={"download_slot": "slow"})
            def parse(self, response):
                yield {"slot": response.meta["download_slot"]}
        """,
        settings='DOWNLOAD_SLOTS = {"slow": {"delay": 0.5, "concurrency": 1, "jitter": 0}}',
    )
    with Site(crowd.answer) as site:
        project.crawl("theirs", base=site.base)
    began = sorted(crowd.began)
    assert began[-1] - began[0] > 0.3 * 3
    assert [item["slot"] for item in project.items] == ["slow"] * 4


def test_the_signals_of_the_downloader_are_sent_for_the_spiders_requests(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        from scrapy import signals
        class Theirs(scrapy.Spider):
            name = "theirs"
            @classmethod
            def from_crawler(cls, crawler, *args, **kwargs):
                spider = super().from_crawler(crawler, *args, **kwargs)
                spider.heard = []
                for name in ("request_scheduled", "request_reached_downloader", "response_downloaded",
                             "request_left_downloader", "response_received"):
                    def hear(name=name):
                        spider.heard.append(name)
                    crawler.signals.connect(hear, getattr(signals, name), weak=False)
                return spider
            async def start(self):
                yield scrapy.Request(self.base + "/list")
            def parse(self, response):
                yield {"heard": self.heard, "slot": response.meta["download_slot"]}
        """,
    )
    with Site(Crowd().answer) as site:
        project.crawl("theirs", base=site.base)
    received = ["request_scheduled", "request_reached_downloader", "response_downloaded", "request_left_downloader"]
    assert project.items == [{"heard": [*received, "response_received"], "slot": "127.0.0.1"}]
