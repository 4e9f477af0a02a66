"""The order in which a real crawl asks for the pages of a loopback web is that of the virtual crawler."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.acceptance.crawls import policy, run
from tests.ranking.linked_web import LinkedWeb
from webfountain.lab.simulate.crawl_order import GraphFile
from webfountain.lab.simulate.crawl_order import crawl as virtual_crawl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Server(ThreadingHTTPServer):
    """A graph as one site, so that there is one request at a time as in the simulation; page `start` is its root."""

    daemon_threads = True

    def __init__(self, web: GraphFile, start: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.web = web
        self.start = start
        self.order: list[int] = []

    def path_of(self, page: int) -> str:
        return "/" if page == self.start else f"/page/{page}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        server = self.server
        number = str(server.start) if self.path == "/" else self.path.removeprefix("/page/")
        if not number.isdecimal():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        page = int(number)
        server.order.append(page)
        targets = server.web.indices[server.web.indptr[page] : server.web.indptr[page + 1]].tolist()
        body = (f"page {page} " + "".join(f"<a href='{server.path_of(each)}'>x</a>" for each in targets)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def served(web: GraphFile, start: int) -> Iterator[Server]:
    with Server(web, start) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def live_order(web: GraphFile, start: int, folder: Path, *settings: str, seconds: float = 3600.0) -> list[int]:
    """Return the order in which a real crawl asks for the pages of a graph over HTTP."""
    with served(web, start) as server:
        seed = f"http://127.0.0.1:{server.server_port}/"
        file = policy(folder, [seed], ranking={"every": "1d"}, collection={"limits": {"depth": 10_000}})
        run(file, folder / "store", "--until-idle", *settings, seconds=seconds)
        return list(dict.fromkeys(server.order))


@pytest.mark.soak
def test_a_real_crawl_finds_the_important_pages_as_soon_as_the_virtual_crawler_does(tmp_path: Path) -> None:
    """Pages of 20 generated sites. The real crawl leases a page before the links of the one before are read."""
    made = LinkedWeb(20, seed=3)
    web = GraphFile(made.indptr, made.indices)
    virtual = virtual_crawl(web, 0, "fountain").order.tolist()
    live = live_order(web, 0, tmp_path, "-s", "WEBFOUNTAIN_HAND=1", seconds=300)
    assert set(live) == set(virtual)
    count = len(virtual)
    for share in (0.1, 0.2, 0.3, 0.5):
        first = round(share * count)
        assert made.found(live, first) >= 0.95 * made.found(virtual, first), share
    places = np.empty((2, len(made.urls)))
    for row, order in enumerate((live, virtual)):
        places[row, order] = np.arange(count)
    reached = places[:, sorted(virtual)]
    assert np.asarray(np.corrcoef(reached))[0, 1] >= 0.9
