"""Many sites of large pages at once: all processes of the crawl together stay below a gigabyte."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import Crawl, policy
from tests.acceptance.test_hour import family, rss_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SITES = 40
MEGABYTE = 1_000_000


@cache
def page() -> bytes:
    """7.5 MB of paragraphs, with a link to another such page."""
    words = " ".join(f"word{i}" for i in range(60))
    paragraphs = f"<p>{words}</p>".encode()
    return b"<title>L</title><a href=/next>next</a>" + paragraphs * (7_500_000 // len(paragraphs))


@cache
def packed() -> bytes:
    """The same in 40 kB."""
    return gzip.compress(page())


class Large(BaseHTTPRequestHandler):
    """Answers with a large page, as it is on every other site, and packed on the rest."""

    def do_GET(self) -> None:
        """One page."""
        if self.path == "/robots.txt":
            self.send_error(404)
            return
        is_packed = int(str(self.headers["Host"]).rpartition(":")[0].rpartition(".")[2]) % 2
        body = packed() if is_packed else page()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        if is_packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def large_sites() -> Iterator[list[str]]:
    """Home pages of sites that listen while the block runs."""
    servers = [ThreadingHTTPServer((f"127.0.2.{nth + 1}", 0), Large) for nth in range(SITES)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [f"http://{server.server_address[0]!s}:{server.server_address[1]}/" for server in servers]
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@pytest.mark.soak
def test_forty_sites_of_large_pages_stay_below_a_gigabyte(tmp_path: Path) -> None:
    with large_sites() as seeds:
        collection = policy(tmp_path, seeds, politeness={"timeout": "120s"})
        with Crawl(collection, tmp_path / "store", "--until-idle") as crawl:
            most = 0
            while crawl.process.poll() is None:
                most = max(most, sum(map(rss_bytes, family(crawl.process.pid))))
                time.sleep(0.05)
            assert crawl.wait(1) == 0, crawl.errors.read_text()
            report = crawl.report()
    print(most, report)
    assert report["new"] == 2 * SITES
    assert most < 1000 * MEGABYTE
