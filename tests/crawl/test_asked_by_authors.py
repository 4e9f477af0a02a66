"""What authors of projects ask for: single requests made again, items that changed, sessions, what failed."""

from __future__ import annotations

import signal
import stat
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from scrapy import Request

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site
from webfountain.crawl.revisits import ALWAYS, NEVER, revisit_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("always", ALWAYS), ("never", NEVER), (60, 60.0), (1.5, 1.5), ("12h", 43_200.0), ("7d", 604_800.0)],
)
def test_an_interval_is_seconds_or_a_duration(given: object, seconds: float) -> None:
    assert revisit_of(Request("http://a.test/", meta={"revisit": given})) == seconds


@pytest.mark.parametrize("given", [None, True, -1, "soon", [], {"a": 1}])
def test_what_is_no_interval_does_not_count(given: object) -> None:
    assert revisit_of(Request("http://a.test/", meta={"revisit": given})) is None


def test_a_request_is_made_again_when_its_meta_says_so(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for when in ("always", "never", 0.001, "30d", None):
                    for _ in range(2):
                        yield scrapy.Request(f"{self._base}/{when}", self.seen, meta={"revisit": when})
            def seen(self, response):
                yield {"url": response.url}
        """,
    )
    with Site(lambda asked: Answer(f"<p>{asked.path}</p>")) as site:
        for _ in range(3):
            project.crawl("theirs", _base=site.base)
    assert Counter(site.paths) == {"/always": 3, "/never": 1, "/0.001": 3, "/30d": 1, "/None": 1}
    assert len(project.items) == 9


def test_only_items_that_are_new_or_changed_come_again(tmp_path: Path) -> None:
    prices = {"a": [1, 1, 2, 1], "b": [5, 5, 5, 5]}
    visits = Counter[str]()

    def answer(asked: ReceivedRequest) -> Answer:
        visits[asked.path] += 1
        rows = "".join(f"<li>{name} {by_visit[visits[asked.path] - 1]}</li>" for name, by_visit in prices.items())
        return Answer(rows)

    project = Project(
        tmp_path,
        """
        import itertools, time
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self._base + "/list", dont_filter=True)
            def parse(self, response):
                for row in response.css("li::text").getall():
                    name, price = row.split()
                    yield {"name": name, "price": price, "at": time.time()}
        """,
        settings='WEBFOUNTAIN_ITEMS = "changed"\nWEBFOUNTAIN_ITEM_FIELDS_IGNORED = "at"',
    )
    with Site(answer) as site:
        for _ in range(4):
            log = project.crawl("theirs", _base=site.base)
    assert [(item["name"], item["price"]) for item in project.items] == [
        ("a", "1"),
        ("b", "5"),
        ("a", "2"),
        ("a", "1"),
    ]
    assert "'addon/items_unchanged': 1" in log
    [file] = tmp_path.glob(".webfountain/theirs/items.sqlite")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_request_that_failed_last_time_is_made_again_unless_a_retry_succeeded(tmp_path: Path) -> None:
    down = True
    tries = Counter[str]()

    def answer(asked: ReceivedRequest) -> Answer:
        tries[asked.path] += 1
        if asked.path == "/flaky":
            return Answer("", 503 if tries["/flaky"] == 1 else 200)
        if asked.path == "/moved":
            return Answer("", 302, (("Location", "/good"),))
        return Answer("", 503) if down and asked.path == "/bad" else Answer("ok")

    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for path in ("good", "bad", "flaky", "moved"):
                    yield scrapy.Request(f"{self._base}/{path}", self.seen)
            def seen(self, response):
                yield {"url": response.url}
        """,
        settings="RETRY_TIMES = 1",
    )
    with Site(answer) as site:
        project.crawl("theirs", _base=site.base)
        down = False
        before = len(site.paths)
        project.crawl("theirs", _base=site.base)
        assert len(site.paths) == before
        project.crawl("theirs", "-s", "WEBFOUNTAIN_RETRY_FAILED=True", _base=site.base)
        assert site.paths[before:] == ["/bad"]
        project.crawl("theirs", "-s", "WEBFOUNTAIN_RETRY_FAILED=True", _base=site.base)
        assert len(site.paths) == before + 1
    assert site.base + "/bad" in [item["url"] for item in project.items]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_session_outlives_a_stop_and_a_kill_where_that_is_asked_for(tmp_path: Path, end: signal.Signals) -> None:
    def answer(asked: ReceivedRequest) -> Answer:
        time.sleep(0.03)
        if asked.path == "/login":
            return Answer("in", headers=(("Set-Cookie", "session=of-me; Path=/"),))
        return Answer(f"<p>{asked.headers.get('cookie', 'anonymous')}</p>")

    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.FormRequest(self._base + "/login", self.logged_in, formdata={"a": "b"},
                                         meta={"cookiejar": 7})
            def logged_in(self, response):
                for n in range(12):
                    yield response.follow(f"/{n}", self.seen, meta={"cookiejar": 7})
            def seen(self, response):
                yield {"as": response.css("p::text").get()}
        """,
        settings="WEBFOUNTAIN_COOKIES = True\nCONCURRENT_REQUESTS_PER_DOMAIN = 1",
    )
    with Site(answer) as site:
        process = project.start("theirs", _base=site.base)
        while len(site.paths) < 5:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(end)
        process.communicate(timeout=240)
        project.crawl("theirs", _base=site.base)
    assert {item["as"] for item in project.items} == {"session=of-me"}
    assert site.paths.count("/login") == 1
    [file] = tmp_path.glob(".webfountain/theirs/cookies")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_cookie_is_kept_unless_that_is_asked_for(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self._base + "/login")
            def parse(self, response):
                pass
        """,
    )
    with Site(lambda _: Answer("in", headers=(("Set-Cookie", "session=secret-of-me"),))) as site:
        project.crawl("theirs", _base=site.base)
    kept = [file for file in tmp_path.rglob("*") if file.is_file() and b"secret-of-me" in file.read_bytes()]
    assert kept == []
