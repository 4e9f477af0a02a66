"""Sites that repeat each other's pages, crawled without network and with a duplicate detector."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import msgspec

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.clock import ManualClock
from webfountain.duplicates.detector import DuplicateDetector
from webfountain.duplicates.index import DuplicateIndex
from webfountain.frontier.visit import PageContent, Visit
from webfountain.records import Fetch, FetchResult, Link, Outcome
from webfountain.repository.repository import Repository
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.lanes import LANES
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import OutcomeKind, PageRecord
    from webfountain.store.contract import FrontierStore

A, B, C = "http://a.example", "http://b.example", "http://c.example"
DAY = 86_400.0


def text(seed: int, *, words: int = 300, changed: int = 0) -> str:
    """Words of a page, some of them changed."""
    drawn = random.Random(seed).choices(range(100_000), k=words)
    for place in range(changed):
        drawn[(place * words) // max(changed, 1)] = -place - 1
    return " ".join(f"w{number}" for number in drawn)


def page(body: str, *links: str, canonical: str | None = None) -> str:
    head = "" if canonical is None else f'<link rel="canonical" href="{canonical}">'
    return f"<html><head>{head}</head><body>{body}" + "".join(f'<a href="{link}"></a>' for link in links)


class Town:
    """A crawl of sites whose pages are texts by URL, with a detector."""

    def __init__(
        self,
        folder: Path,
        pages: dict[str, str],
        *,
        seeds: tuple[str, ...],
        rest: str = "[duplicates]\ndetect = true\n",
        store: FrontierStore | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.pages = pages
        clock = clock or ManualClock(1_000_000.0)
        self.repository = Repository(folder / "repository", clock=clock)
        self.index = DuplicateIndex(folder / "duplicates")
        collection = collection_of([seed + "/" for seed in seeds], collection='scope = "any"', rest=rest)
        self.drive = Drive(
            collection, self.answer, repository=self.repository, clock=clock, duplicates=self.index, store=store
        )

    def answer(self, fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page" or fetch.url not in self.pages:
            return 404, {}, b"", self.seconds(fetch)
        return 200, {"content-type": "text/html"}, self.pages[fetch.url].encode(), self.seconds(fetch)

    def seconds(self, fetch: Fetch) -> float:
        """Return how long a server takes for an answer."""
        return 0.1

    def record(self, url: str) -> PageRecord:
        found = self.drive.store.pages.get(site_of(url), fingerprint(url))
        assert found is not None
        return found

    def asked(self, site: str) -> list[str]:
        return [url for url in self.drive.asked() if url.startswith(site)]

    def changes(self) -> list[tuple[str, str, str | None]]:
        return [(entry.url, entry.verdict, entry.target) for _, entry in self.drive.store.changes.after(None, 999)]


class Ants:
    """Two ants' detectors over one store; each page is on a site of its own."""

    def __init__(self, folder: Path) -> None:
        self.texts: dict[str, str] = {}
        self.store = MemoryStore(period_s=DAY)
        self._folder = folder
        self._at = 1.0
        self.open(beside=folder)

    def open(self, *, beside: Path | None) -> None:
        """Those of before are closed; without a folder `beside` neither sees the other."""
        folders = [self._folder / f"ant-{number:04d}" / "duplicates" for number in range(2)]
        self._indices = [DuplicateIndex(each, beside=beside) for each in folders]
        self._detectors = [
            DuplicateDetector(
                index,
                store=self.store,
                text_of=lambda record: self.texts[record.url],
                resemblance=0.9,
                revisit_s=DAY,
            )
            for index in self._indices
        ]

    def close(self) -> None:
        for index in self._indices:
            index.close()

    def fetch(self, ant: int, url: str, text: str | None = None) -> PageRecord:
        """A page is fetched by an ant, changed to the text if one is given; its record."""
        self._at += 2 * DAY
        kind: OutcomeKind = "same" if text is None else "changed" if url in self.texts else "new"
        self.texts[url] = self.texts[url] if text is None else text
        self.store.queues.discover([Link(url, site_of(url), fingerprint(url))], at=self._at)
        self.store.queues.advance(site_of(url), [fingerprint(url)], due=self._at, at=self._at)
        [site] = self.store.sites.enlist([site_of(url)], owner="x", until=self._at + DAY, at=self._at)
        [dealt] = self.store.queues.lease([Refill(site, never_crawled=1, recrawl=1, horizon=[self._at] * LANES)])
        assert dealt is not None
        [lease] = [*dealt.never_crawled, *dealt.recrawl]
        digest = hashlib.sha1(self.texts[url].encode(), usedforsecurity=False).hexdigest()
        record = msgspec.structs.replace(lease.record, state="crawled", last_crawled=self._at, digest=digest)
        fetched = FetchResult(Fetch(1, "page", url, site_of(url), None, lease), self._at, 0.1, 200)
        [[judged], _] = self._detectors[ant].judge([Visit(fetched, kind, record, PageContent(text=text or ""))])
        self.store.queues.settle([Outcome(lease.id, kind, judged.record)], at=self._at)
        self.store.sites.park([ParkRequest(site, self._at, site.record.state)], at=self._at)
        return judged.record
