"""The interface between the HTTP server and a web on loopback: a clock, answers and the true pages.

Each call passes the time as an argument: in periods for the generated web, in seconds for recorded pages.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HTML", "Answer", "Web", "WebClock", "http_date"]

HTML = "text/html; charset=utf-8"


class Answer(NamedTuple):
    """The answer to one request. ``changed`` is the web time of the last change; None if the answer has no date."""

    status: int
    body: bytes = b""
    etag: str = ""
    changed: float | None = None
    location: str = ""
    media_type: str = HTML


class Web(Protocol):
    """A set of sites that answers requests. A web has no state: equal arguments give equal answers."""

    def respond(self, site: int, path: str, t: float) -> Answer:
        """Return the answer of site number `site` to a path (with query) at web time `t`."""
        ...

    def truth(self, t: float) -> Iterator[tuple[str, str]]:
        """Yield the URL of each page that exists at `t` and is reachable by links, with the hex SHA-1 of its body."""
        ...


class WebClock(NamedTuple):
    """A clock of web time: it shows `origin` at UTC second `started`, and then runs at `rate` web units per second.

    With a rate of 0, the clock is stopped.
    """

    origin: float
    rate: float
    started: float

    @classmethod
    def start(cls, origin: float, rate: float) -> WebClock:
        return cls(origin, rate, time.time() - (0 if rate else 60))

    def web(self, utc: float) -> float:
        return self.origin + (utc - self.started) * self.rate

    def utc(self, t: float) -> float:
        return self.started + (t - self.origin) / (self.rate or 1.0)


@lru_cache(maxsize=4096)
def http_date(second: int) -> str:
    """Return a time in the date format of RFC 9110, section 5.6.7."""
    return formatdate(second, usegmt=True)
