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
