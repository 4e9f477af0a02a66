"""The webs that `bench_live` crawls, as functions of the day: recorded real sites and generated sites.

Each web has an answer for a path of a site on a day, and a truth for each day. `Judge` decides whether a copy that
differs from the live page is obsolete. The pages of `Bursty` change by releases, a whole directory or site at once.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from functools import lru_cache
from hashlib import sha1
from typing import TYPE_CHECKING, Protocol

from tests.servers.timeweb import DAY, START, TimeWeb
from webfountain.core.shingles import exact_resemblance
from webfountain.formats.document import text_of
from webfountain.formats.media_type import ContentType
from webfountain.lab.demo.answers import Answer
from webfountain.lab.demo.web import generated_web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = ["Bursty", "DeadLinks", "GeneratedWeb", "Judge", "RecordedWeb", "Web", "open_web"]


class Web(Protocol):
    """Sites over time, in days from 0."""

    bases: list[str]

    def respond(self, site: int, path: str, day: float) -> Answer:
        """Return a server's answer."""
        ...

    def truth(self, day: float) -> dict[str, str]:
        """Return URL and digest of each page that links reach."""
        ...


class RecordedWeb:
    """The web of `timeweb`, from `offset` days after its first day."""

    def __init__(self, archive: Path, *, offset: float = 0.0, bases: Iterable[str] = ()) -> None:
        self.bases = list(bases) or ["http://flink.example", "http://kafka.example"]
        self._web = TimeWeb(archive, self.bases)
        self._start = START + offset * DAY
        self._blobs: dict[str, str] | None = None

    def respond(self, site: int, path: str, day: float) -> Answer:
        return self._web.respond(site, path, self._start + day * DAY)

    def truth(self, day: float) -> dict[str, str]:
        return dict(self._web.truth(self._start + day * DAY))

    def body(self, digest: str) -> bytes:
        """Return the body with a digest, of any page and time."""
        if self._blobs is None:
            names = {blob for site in self._web.versions for _, blobs in site.values() for blob in blobs if blob}
            self._blobs = {self._web.digest(blob): blob for blob in names}
        return self._web.body(self._blobs[digest])


class GeneratedWeb:
    """The demonstration's web, where each page changes by its own Poisson process."""

    def __init__(self, seed: int) -> None:
        self._web = generated_web(seed, sites=4, pages=300, body_bytes=1500, links=15, births=0.2, deaths=0.1, span=90)
        self.bases = self._web.bases

    def respond(self, site: int, path: str, day: float) -> Answer:
        return self._web.respond(site, path, day)

    def truth(self, day: float) -> dict[str, str]:
        return dict(self._web.truth(day))


class Bursty:
    """Three sites with directories. Releases change a site or a directory at a time, and few pages change alone."""

    _DIRECTORIES = (4, 8, 12, 20, 30)
    _SITE, _DIRECTORY, _PAGE = 1 / 40, 1 / 25, 1 / 150  # changes a day, mean

    def __init__(self, seed: int, *, sites: int = 3, days: int = 1000) -> None:
        self.bases = [f"http://bursty{i}.example" for i in range(sites)]
        rng = random.Random(seed)
        self._changes: list[dict[str, list[float]]] = [self._site(rng, days) for _ in self.bases]
        self._digest = lru_cache(maxsize=None)(lambda *key: sha1(self._body(*key), usedforsecurity=False).hexdigest())

    def _site(self, rng: random.Random, days: int) -> dict[str, list[float]]:
        whole = _poisson(rng, self._SITE, days)
        pages = {"/": _poisson(rng, 1 / 10, days)}
        for number, size in enumerate(self._DIRECTORIES):
            shared = _poisson(rng, self._DIRECTORY * rng.lognormvariate(0, 0.7), days)
            for page in range(size):
                own = _poisson(rng, self._PAGE * rng.lognormvariate(0, 1), days)
                struck = [at for at in whole + shared if rng.random() < 0.9]
                pages[f"/part{number}/page{page}.html"] = sorted(struck + own)
        return pages

    def respond(self, site: int, path: str, day: float) -> Answer:
        changes = self._changes[site].get(path)
        if changes is None:
            return Answer(404, b"Not Found")
        version = bisect_right(changes, day)
        since = changes[version - 1] if version else -50.0
        return Answer(200, self._body(site, path, version), self._digest(site, path, version), since)

    def truth(self, day: float) -> dict[str, str]:
        return {
            base + path: self._digest(site, path, bisect_right(changes, day))
            for site, base in enumerate(self.bases)
            for path, changes in self._changes[site].items()
        }

    def _body(self, site: int, path: str, version: int) -> bytes:
        words = random.Random(f"{site} {path} {version}")
        text = " ".join(f"word{words.randrange(5000)}" for _ in range(150))
        links = [] if path != "/" else [*self._changes[site], *(f"{base}/" for base in self.bases)]
        return (f"<title>{path}</title><p>{text}</p>" + "".join(f'<a href="{link}">x</a>' for link in links)).encode()


class DeadLinks:
    """A site with three dead URLs on its home page for each live page.

    Every tenth page disappears for a time, and a few of the dead URLs get a page.
    """

    RELEASED = 45.0
    """Day from which the home page has the URLs of a release."""
    _LIVE, _DEAD_PER_LIVE = 150, 3
    GUIDES, _DEAD_APIS = 30, 300
    _SLOWEST, _FASTEST = 1 / 500, 1 / 5  # changes a day

    def __init__(self, seed: int, *, births: bool = True, release: bool = False, days: int = 1000) -> None:
        """With `births`, one of fifty dead URLs gets a page. With `release`, on one day the home page links thirty new
        pages of one directory and three hundred dead URLs of another.
        """
        self.bases = ["http://dead.example"]
        rng = random.Random(seed)
        self._changes: dict[str, list[float]] = {"/": [self.RELEASED] if release else []}
        self.absent: dict[str, tuple[float, float]] = {}
        """Path of each page that disappears, with the days of its end and of its return."""
        for number in range(self._LIVE):
            rate = self._SLOWEST * (self._FASTEST / self._SLOWEST) ** rng.random()
            self._changes[f"/part{number % 6}/page{number}.html"] = _poisson(rng, rate, days)
            if number % 10 == 0:
                gone = rng.uniform(20, 60)
                self.absent[f"/part{number % 6}/page{number}.html"] = (gone, gone + rng.uniform(3, 40))
        for number in range(self._LIVE * self._DEAD_PER_LIVE):
            path = f"/part{number % 6}/dead{number}.html"
            self._changes[path] = []
            self.absent[path] = (-1.0, rng.uniform(10, 80) if births and number % 50 == 0 else float("inf"))
        self._old = list(self._changes)
        for number in range((self.GUIDES + self._DEAD_APIS) * release):
            is_guide = number % (self._DEAD_APIS // self.GUIDES + 1) == 0
            path = f"/guide/{number}.html" if is_guide else f"/api/{number}.html"
            self._changes[path] = []
            self.absent[path] = (-1.0, self.RELEASED if is_guide else float("inf"))

    def _is_away(self, path: str, day: float) -> bool:
        begin, end = self.absent.get(path, (0.0, 0.0))
        return begin <= day < end

    def respond(self, site: int, path: str, day: float) -> Answer:
        changes = self._changes.get(path)
        if changes is None or self._is_away(path, day):
            return Answer(404, b"Not Found")
        version = bisect_right(changes, day)
        since = changes[version - 1] if version else -50.0
        return Answer(200, self._body(path, version), f"{path} {version}", since)

    def truth(self, day: float) -> dict[str, str]:
        return {
            self.bases[0] + path: sha1(self._body(path, bisect_right(changes, day)), usedforsecurity=False).hexdigest()
            for path, changes in self._changes.items()
            if not self._is_away(path, day)
        }

    def _body(self, path: str, version: int) -> bytes:
        links: Iterable[str] = ()
        if path == "/":
            links = self._changes if version else self._old
        return (
            f"<title>{path}</title><p>{path} {version}</p>" + "".join(f'<a href="{a}">x</a>' for a in links)
        ).encode()


def _poisson(rng: random.Random, rate: float, days: int) -> list[float]:
    """Return the times of a Poisson process."""
    times, at = [], rng.expovariate(rate)
    while at < days:
        times.append(at)
        at += rng.expovariate(rate)
    return times


def open_web(name: str, *, archive: Path, seed: int, offset: float) -> Web:
    """Return the web with a name."""
    if name == "timeweb":
        return RecordedWeb(archive, offset=offset)
    if name == "dead":
        return DeadLinks(seed)
    return GeneratedWeb(seed) if name == "generated" else Bursty(seed)


class Judge:
    """Decides whether a copy is obsolete: it differs from the live page by a change that counts (DESIGN.md section
    1).
    """

    def __init__(self, min_change: float, body: Callable[[str], bytes]) -> None:
        """`body` returns the bytes with a digest."""
        self._min_change, self._body = min_change, body
        self._resemblance = lru_cache(maxsize=None)(self._compare)

    def obsolete(self, held: str, live: str) -> bool:
        """Return whether our copy is obsolete, by the digests of our copy and of the live page."""
        if held == live or not self._min_change:
            return held != live
        return self._resemblance(held, live) < 1 - self._min_change

    def _compare(self, held: str, live: str) -> float:
        old, new = (text_of(self._body(digest), ContentType("text/html", None)).text for digest in (held, live))
        return exact_resemblance(old, new)
