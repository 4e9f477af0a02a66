"""What a web on loopback is to the server that speaks HTTP for it: a clock, answers and a truth.

Place in the walk: before it; this is the outside world that the demo and the tests crawl. A web knows neither
sockets nor headers, and it never reads a clock: *web time* is an argument, in whatever unit the web counts
(periods for the generated web, seconds for recorded pages).
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
    """One answer of a web. ``changed`` is the web time of the last change, None where no date is told."""

    status: int
    body: bytes = b""
    etag: str = ""
    changed: float | None = None
    location: str = ""
    media_type: str = HTML


class Web(Protocol):
    """Sites that can be asked. Pure: equal arguments give equal answers, in any order of asking."""

    def respond(self, site: int, path: str, t: float) -> Answer:
        """The answer of site number `site` to a path (with its query) at web time `t`."""
        ...

    def truth(self, t: float) -> Iterator[tuple[str, str]]:
        """URL and hex SHA-1 of the body of every page that exists at `t` and that links reach at `t`."""
        ...


class WebClock(NamedTuple):
    """Web time runs from `origin` at UTC second `started`, `rate` web units a second; rate 0 stops it."""

    origin: float
    rate: float
    started: float

    @classmethod
    def start(cls, origin: float, rate: float) -> WebClock:
        """A clock that runs from now on; one that stands does so since a minute, so that all changes have a date."""
        return cls(origin, rate, time.time() - (0 if rate else 60))

    def web(self, utc: float) -> float:
        """Web time at a UTC second."""
        return self.origin + (utc - self.started) * self.rate

    def utc(self, t: float) -> float:
        """UTC second of a web time; with time stopped, one web unit before the origin counts as a second."""
        return self.started + (t - self.origin) / (self.rate or 1.0)


@lru_cache(maxsize=4096)
def http_date(second: int) -> str:
    """The date form of RFC 9110, section 5.6.7."""
    return formatdate(second, usegmt=True)
