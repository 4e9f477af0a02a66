"""The server of /metrics and /healthz of a crawl, if the setting WEBFOUNTAIN_METRICS names a loopback address.

A separate thread answers with the last snapshot of the crawl. The path /healthz returns 503 if the event loop has made
no snapshot for STALE_S.
"""

from __future__ import annotations

import ipaddress
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from scrapy import signals
from scrapy.exceptions import NotConfigured

from webfountain.crawl import engine
from webfountain.crawl.session import Session
from webfountain.errors import InputError
from webfountain.history.live import STALE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler


__all__ = ["MetricsServer"]

_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


class MetricsServer:
    """The server of one crawl. Raises NotConfigured if no address is set."""

    def __init__(self, session: Session, address: tuple[str, int]) -> None:
        self._session = session
        try:
            self._server = ThreadingHTTPServer(address, _handler(self._answer))
        except OSError as error:
            raise InputError(f"setting WEBFOUNTAIN_METRICS: {address[0]}:{address[1]}: {error.strerror}") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="webfountain-metrics")
        self._thread.start()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Start the server if the setting names an address."""
        session = Session.of(crawler)
        if session.config.metrics is None:
            raise NotConfigured
        try:
            server = cls(session, _address_of(session.config.metrics))
        except InputError as error:
            engine.refuse(crawler, error, crawl=engine.running_crawl())
            raise
        crawler.signals.connect(server.spider_closed, signals.spider_closed)
        return server

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.server_address[1])

    def spider_closed(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        snapshot, built = self._session.snapshot, self._session.built
        if path == "/healthz":
            alive = snapshot is None or built is None or built.clock.now() - snapshot.at < STALE_S
            return (200 if alive else 503), "application/json", b'{"alive":true}' if alive else b'{"alive":false}'
        if path == "/metrics":
            from webfountain.history.exposition import CONTENT_TYPE, Figures, exposition  # noqa: PLC0415  0.1 s

            name, live = "" if built is None else built.collection.name, [] if snapshot is None else [snapshot]
            at = 0.0 if snapshot is None else snapshot.at
            return 200, CONTENT_TYPE, exposition([Figures(name, available=True, at=at, live=live)])
        return 404, "text/plain", b"/metrics and /healthz are here\n"


def _handler(answer: Callable[[str], tuple[int, str, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """The handler of GET requests, which refuses unknown names in the Host header (DNS rebinding)."""

        server_version = "webfountain"
        sys_version = ""
        timeout = 10.0

        def do_GET(self) -> None:
            """Answer a request."""
            host = self.headers.get("Host", "").rpartition(":")
            name = host[0] if host[2].isdigit() else "".join(host)
            status, kind, body = answer(self.path) if name in _HOSTS else (421, "text/plain", b"a foreign host name\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    return Handler


def _address_of(text: str) -> tuple[str, int]:
    """Return host and port of a loopback address. Raise InputError if the address is not a loopback address."""
    host, _, port = text.rpartition(":")
    host = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host)
    try:
        if not ipaddress.ip_address(host).is_loopback or not 0 <= int(port) <= 65_535:
            raise ValueError(text)
    except ValueError:
        raise InputError(
            f"setting WEBFOUNTAIN_METRICS: {text!r} is not allowed (allowed: a port, or a loopback address such as "
            "127.0.0.1:9410; for other addresses use `webfountain serve`)"
        ) from None
    return host, int(port)
