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
    """A linked web as one site, so that there is one request at a time as in the simulation; page 0 is its root."""

    daemon_threads = True

    def __init__(self, web: LinkedWeb) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.web = web
        self.order: list[int] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        number = "0" if self.path == "/" else self.path.removeprefix("/page/")
        if not number.isdecimal():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        page = int(number)
        self.server.order.append(page)
        links = (f"/page/{each}" if each else "/" for each in self.server.web.links[page])
        body = (f"page {page} " + "".join(f"<a href='{link}'>x</a>" for link in links)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def served(web: LinkedWeb) -> Iterator[Server]:
    with Server(web) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.soak
def test_a_real_crawl_finds_the_important_pages_as_soon_as_the_virtual_crawler_does(tmp_path: Path) -> None:
    """932 pages. Correlation of the two orders: .92; of the virtual one with a random order .49."""
    web = LinkedWeb(20, seed=3)
    virtual = virtual_crawl(GraphFile(web.indptr, web.indices), 0, "fountain").order.tolist()
    with served(web) as server:
        seed = f"http://127.0.0.1:{server.server_port}/"
        file = policy(tmp_path, [seed], ranking={"every": "1d"}, collection={"limits": {"depth": 1000}})
        run(file, tmp_path / "store", "--until-idle", "-s", "WEBFOUNTAIN_HAND=1", seconds=300)
        live = list(dict.fromkeys(server.order))
    assert set(live) == set(virtual)
    count = len(virtual)
    for share in (0.1, 0.2, 0.3, 0.5):
        first = round(share * count)
        assert web.found(live, first) >= 0.8 * web.found(virtual, first), share
    places = np.empty((2, len(web.urls)))
    for row, order in enumerate((live, virtual)):
        places[row, order] = np.arange(count)
    reached = places[:, sorted(virtual)]
    assert np.asarray(np.corrcoef(reached))[0, 1] >= 0.8
