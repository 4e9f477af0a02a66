"""robots.txt is asked for and read for a Scrapy project as Scrapy does it, and more carefully."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPIDER = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self.base + "/open", errback=self.failed)
            yield scrapy.Request(self.base + "/secret", errback=self.failed)
        def parse(self, response):
            yield {"got": response.url.removeprefix(self.base)}
        def failed(self, failure):
            yield {"failed": failure.request.url.removeprefix(self.base), "error": failure.type.__name__}
"""
RULES = "User-agent: {name}\nDisallow: /secret\n\nUser-agent: *\nAllow: /\n"


class Strict:
    """A server that answers 400 to any header that comes twice, and packs its robots.txt."""

    def __init__(self, robots: str) -> None:
        self.asked: list[tuple[str, Counter[str]]] = []
        strict = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                names = Counter(name.lower() for name in self.headers.keys())  # noqa: SIM118  keys() has each as often as it came
                strict.asked.append((self.path, names))
                body = gzip.compress((robots if self.path == "/robots.txt" else "<p>page</p>").encode())
                self.send_response(400 if max(names.values()) > 1 else 200)
                self.send_header("Content-Type", "text/plain" if self.path == "/robots.txt" else "text/html")
                self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def strict() -> Iterator[Strict]:
    strict = Strict(RULES.format(name="theirs"))
    thread = threading.Thread(target=strict.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield strict
    strict.server.shutdown()
    strict.server.server_close()
    thread.join()


def test_a_server_that_refuses_headers_that_come_twice_is_obeyed(tmp_path: Path, strict: Strict) -> None:
    project = Project(tmp_path, SPIDER, settings="ROBOTSTXT_OBEY = True")
    log = project.crawl("theirs", base=strict.base)
    assert [path for path, _ in strict.asked] == ["/robots.txt", "/open"]
    assert all(max(names.values()) == 1 for _, names in strict.asked)
    assert {"failed": "/secret", "error": "IgnoreRequest"} in project.items
    assert "ERROR" not in log


@pytest.mark.parametrize(
    ("group", "settings"),
    [
        ("nicebot", 'USER_AGENT = "Mozilla/5.0 (compatible; nicebot/1.0)"'),
        ("other", 'ROBOTSTXT_USER_AGENT = "other"'),
        ("theirs", ""),
        ("theirs/2.0", ""),
    ],
)
def test_the_robots_name_is_found_as_scrapy_finds_it(tmp_path: Path, group: str, settings: str) -> None:
    project = Project(tmp_path, SPIDER, settings="ROBOTSTXT_OBEY = True\n" + settings)
    with Site(lambda _: Answer("<p>page</p>"), robots=RULES.format(name=group)) as site:
        project.crawl("theirs", base=site.base)
    assert site.paths == ["/open"]


@pytest.mark.soak  # the five requests take 15 s, each after twice the wait
def test_a_robots_txt_that_never_answers_well_ends_in_the_errbacks(tmp_path: Path) -> None:
    def answer(asked: ReceivedRequest) -> Answer:
        return Answer("", 503) if asked.path == "/robots.txt" else Answer("<p>page</p>")

    project = Project(tmp_path, SPIDER, settings="ROBOTSTXT_OBEY = True\nWEBFOUNTAIN_MAX_SECONDS = 200")
    with Site(answer, answers_robots=True) as site:
        log = project.crawl("theirs", base=site.base)
    assert sorted(item["failed"] for item in project.items) == ["/open", "/secret"]
    assert {item["error"] for item in project.items} == {"IgnoreRequest"}
    assert site.paths == []
    assert "'finish_reason': 'finished'" in log


@pytest.mark.parametrize(("policy", "asked"), [("DummyPolicy", 1), ("RFC2616Policy", 2)])
def test_a_robots_txt_in_the_projects_http_cache_is_used_as_scrapy_uses_it(
    tmp_path: Path, policy: str, asked: int
) -> None:
    """It is not asked for again, or only whether it has changed; its rules hold in each run."""

    def answer(request: ReceivedRequest) -> Answer:
        if request.path != "/robots.txt":
            return Answer("<p>page</p>")
        if request.headers.get("if-none-match") == '"1"':
            return Answer(status=304, headers=(("ETag", '"1"'),))
        return Answer(RULES.format(name="theirs"), headers=(("ETag", '"1"'),))

    settings = f"""
        ROBOTSTXT_OBEY = True
        HTTPCACHE_ENABLED = True
        HTTPCACHE_POLICY = "scrapy.extensions.httpcache.{policy}"
    """
    project = Project(tmp_path, SPIDER, settings=settings)
    with Site(answer, answers_robots=True) as site:
        for run in ("first", "second"):
            project.crawl("theirs", "-s", f"WEBFOUNTAIN_STORE=rocksdb://{tmp_path / run}", base=site.base)
    paths = [request.path for request in site.asked]
    assert paths.count("/robots.txt") == asked
    assert "/secret" not in paths
    refused = {"failed": "/secret", "error": "IgnoreRequest"}
    assert project.items.count(refused) == 2


def test_a_robots_txt_that_the_projects_middlewares_ignore_allows_all_as_with_scrapy(tmp_path: Path) -> None:
    """Here the HTTP cache alone answers, and it has no robots.txt."""
    project = Project(tmp_path, SPIDER, settings="HTTPCACHE_ENABLED = True")
    with Site(lambda _: Answer("<p>page</p>"), robots=RULES.format(name="theirs")) as site:
        project.crawl("theirs", "-s", f"WEBFOUNTAIN_STORE=rocksdb://{tmp_path / 'first'}", base=site.base)
        offline = ("-s", "HTTPCACHE_IGNORE_MISSING=True", "-s", "ROBOTSTXT_OBEY=True")
        project.crawl("theirs", *offline, "-s", f"WEBFOUNTAIN_STORE=rocksdb://{tmp_path / 'second'}", base=site.base)
    assert sorted(site.paths) == ["/open", "/secret"], "the second run asked for nothing"
    assert Counter(item["got"] for item in project.items) == {"/open": 2, "/secret": 2}
