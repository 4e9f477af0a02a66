"""Fetches and stores for the repository's tests, and another tool's view of its files."""

from __future__ import annotations

import hashlib
import io
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from webfountain.records import Copy, Fetch, FetchResult, Lease, LeaseId, Link, Outcome, PageRecord
from webfountain.repository.warc_writer import Capture
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warcio.recordloader import ArcWarcRecord

__all__ = ["SITE", "Crawl", "capture", "check", "records", "sha1", "url_of"]

SITE = "http://example.org"
REQUEST = (("host", "example.org"), ("user-agent", "webfountain/1.0"))


def url_of(number: int) -> str:
    """A page of SITE."""
    return f"{SITE}/page-{number}"


def sha1(body: bytes) -> str:
    """A body's digest as page records have it."""
    return hashlib.sha1(body).hexdigest()


def capture(
    url: str = url_of(0),
    body: bytes = b"<p>hello</p>",
    *,
    status: int | None = 200,
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/html"),),
    request: tuple[tuple[str, str], ...] = REQUEST,
    address: str | None = "127.0.0.1",
    at: float = 1_700_000_000.25,
    digest: str | None = None,
    repeats: float | None = None,
    method: str = "GET",
    key: bytes | None = None,
    before: Copy | None = None,
) -> Capture:
    """A fetch of a leased page."""
    site = site_of(url)
    lease = Lease(LeaseId(site, 1, 1), key or fingerprint(url), PageRecord(url=url))
    fetch = Fetch(id=1, kind="page", url=url, site=site, address=address, lease=lease)
    fetched = FetchResult(
        fetch, at=at, seconds=0.1, status=status, headers=headers, body=body, request_headers=request,
        error=None if status else "connect",
    )  # fmt: skip
    return Capture(fetched, digest=digest, repeats=repeats, method=method, before=before)


def check(directory: Path) -> tuple[int, str]:
    """Exit status and words of ``warcio check`` on every WARC file of a folder."""
    paths = sorted(str(path) for path in directory.glob("*.warc.gz"))
    said = io.StringIO()
    with redirect_stdout(said):
        status = Checker(SimpleNamespace(inputs=paths, verbose=False)).process_all()
    return status, said.getvalue()


def records(directory: Path) -> list[tuple[ArcWarcRecord, bytes]]:
    """Every record of a folder with its content, as warcio reads it."""
    found = []
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as file:
            found += [(record, record.content_stream().read()) for record in ArchiveIterator(file)]
    return found


class Crawl:
    """A reference store whose pages have copies: what retention asks, without a crawler."""

    def __init__(self) -> None:
        self.store = MemoryStore(period_s=86_400.0)
        self._at = 0.0

    def settle(self, urls: Sequence[str], copies: Sequence[Copy | None]) -> None:
        """Let each page be fetched with this copy as its newest (None: the copy it had)."""
        self._at += 1.0
        links = [Link(url=url, site=site_of(url), key=fingerprint(url)) for url in urls]
        self.store.queues.discover(links, at=self._at)
        self.store.queues.immediate(links, at=self._at)
        sites = self.store.sites.activate(len(links), owner="test", until=self._at + 9, at=self._at)
        dealt = self.store.queues.lease([Refill(site, immediate=len(links)) for site in sites])
        leases = [lease for deal in dealt if deal is not None for lease in deal.immediate]
        new = dict(zip(urls, copies, strict=True))
        outcomes = [self._outcome(lease, new[lease.record.url]) for lease in leases]
        assert self.store.queues.settle(outcomes, at=self._at).applied == len(urls)
        self.store.sites.park([ParkRequest(site, self._at, site.record.state) for site in sites], at=self._at)

    def copy(self, url: str) -> Copy | None:
        """Where the store says that a page's newest copy is."""
        record = self.store.pages.get(site_of(url), fingerprint(url))
        return None if record is None else record.copy

    def _outcome(self, lease: Lease, copy: Copy | None) -> Outcome:
        record = msgspec.structs.replace(
            lease.record, state="crawled", last_crawled=self._at, copy=copy or lease.record.copy
        )
        return Outcome(lease=lease.id, kind="changed", record=record)
