"""The stores under test, and the few records that every store test needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.records import Lease, Link, Outcome, OutcomeKind, PageRecord
from webfountain.store import open_store
from webfountain.store.contract import LANES

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import FrontierStore

__all__ = ["ALWAYS", "BACKENDS", "SITE", "crawled", "link", "links", "make_store", "outcome"]

BACKENDS = ("memory", "embedded")
SITE = "https://a.example"
PERIOD_S = 10.0
ALWAYS = [float("inf")] * LANES
"""A horizon at which every tried page is due."""


def make_store(backend: str, folder: Path) -> FrontierStore:
    """A store of the backend, new or as it was left in the folder."""
    url = "memory:" if backend == "memory" else f"rocksdb://{folder}"
    return open_store(url, collection="tests", period_s=PERIOD_S)


def link(number: int, *, site: str = SITE, importance: float = 0.0, source: str = SITE) -> Link:
    """A link to page `number` of a site."""
    return Link(f"{site}/{number}", site, number.to_bytes(8, "big"), importance=importance, source=source)


def links(*numbers: int, site: str = SITE) -> list[Link]:
    """Links to some pages of a site."""
    return [link(number, site=site) for number in numbers]


def crawled(record: PageRecord, at: float, *, bucket: int = 5) -> PageRecord:
    """The record of a page that was fetched well."""
    return msgspec.structs.replace(
        record, state="crawled", last_crawled=at, copied=at, bucket=bucket, due=None, failures=0
    )


def outcome(lease: Lease, at: float, *, kind: OutcomeKind = "new", bucket: int = 5) -> Outcome:
    """A good fetch of a leased page."""
    return Outcome(lease.token, kind, crawled(lease.record, at, bucket=bucket))
