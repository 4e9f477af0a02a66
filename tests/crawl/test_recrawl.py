"""WEBFOUNTAIN_RECRAWL: another project's requests are made again when they come due, until the crawl is told to end."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
[collection]
name = "theirs"
scope = "any"
seeds = ["http://127.0.0.1/"]
[politeness]
user_agent = "theirs/1.0 (+http://theirs.test/)"
min_delay = "0s"
delay_factor = 0
[network]
allow_private = true
[policies.default]
revisit = { min_interval = "200ms", max_interval = "500ms" }
"""
SPIDER = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self.base + "/start", dont_filter=True)
        def parse(self, response):
            yield scrapy.FormRequest(self.base + "/form", formdata={"q": "x"}, callback=self.said, cb_kwargs={"n": 7})
            yield scrapy.Request(self.base + "/lambda", lambda response: {"path": "/lambda"}, meta={"mine": [1]})
            yield scrapy.Request(self.base + "/each", self.said, dont_filter=True)
            yield scrapy.Request(self.base + "/flaky", self.said)
            yield {"path": "/start"}
        def said(self, response, n=None):
            yield {"path": response.url.removeprefix(self.base), "n": n, "retries": response.meta.get("retry_times", 0)}
"""


def test_known_requests_are_made_again_as_they_were_and_one_offs_only_when_they_are_yielded(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()
    often_enough = threading.Event()

    def answer(request: ReceivedRequest) -> Answer:
        asked[request.path] += 1
        assert request.path != "/form" or (request.method, request.body) == ("POST", "q=x")
        if min(asked[path] for path in ("/start", "/form", "/lambda", "/flaky")) > 4:
            often_enough.set()
        return Answer("busy", 500) if request.path == "/flaky" and asked["/flaky"] % 2 else Answer("<p>well</p>")

    settings = 'WEBFOUNTAIN_RECRAWL = True\nWEBFOUNTAIN_COLLECTION = "c.toml"'
    project = Project(tmp_path, SPIDER, settings=settings)
    (tmp_path / "c.toml").write_text(POLICY)
    with Site(answer) as site:
        log = project.crawl_until(often_enough, "theirs", base=site.base)
    assert "'finish_reason': 'shutdown'" in log
    assert "cannot be made again" not in log
    got = Counter(item["path"] for item in project.items)
    assert min(got["/start"], got["/form"], got["/lambda"]) >= 3
    assert all(item["n"] == 7 for item in project.items if item["path"] == "/form")
    # Each look at the start page yields one more, which no schedule repeats.
    assert got["/start"] - 1 <= got["/each"] <= got["/start"]
    # The page that fails every other time is asked and, if need be, retried: the retries are not pages of their own.
    retried = sum(item["retries"] for item in project.items if item["path"] == "/flaky")
    assert retried == got["/flaky"] >= 2


def test_without_recrawl_no_request_is_made_again_and_the_crawl_ends(tmp_path: Path) -> None:
    project = Project(tmp_path, SPIDER, settings='WEBFOUNTAIN_COLLECTION = "c.toml"\nWEBFOUNTAIN_MAX_SECONDS = 200')
    (tmp_path / "c.toml").write_text(POLICY)
    with Site(lambda _: Answer("<p>well</p>")) as site:
        log = project.crawl("theirs", base=site.base)
    assert "'finish_reason': 'finished'" in log
    assert Counter(site.paths) == dict.fromkeys(("/start", "/form", "/lambda", "/each", "/flaky"), 1)
