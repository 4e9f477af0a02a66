"""The stores under test, and the few records and steps that every store test needs."""

from __future__ import annotations

import atexit
import contextlib
import functools
from typing import TYPE_CHECKING, Literal

import msgspec

from tests.servers.valkey import single
from webfountain.records import Lease, Link, Outcome, OutcomeKind, PageRecord, SiteLease
from webfountain.store.answers import Refill
from webfountain.store.lanes import LANES
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.store.contract import FrontierStore

__all__ = [
    "ALWAYS",
    "BACKENDS",
    "SITE",
    "Queue",
    "active",
    "crawled",
    "lease",
    "link",
    "links",
    "make_store",
    "numbers",
    "outcome",
    "refill",
    "server_url",
]

BACKENDS = ("memory", "embedded", "shared")
SITE = "https://a.example"
PERIOD_S = 10.0
ALWAYS = [float("inf")] * LANES
"""A horizon at which every tried page is due."""
Queue = Literal["immediate", "never-crawled", "recrawl"]


def make_store(backend: str, folder: Path) -> FrontierStore:
    """A store of the backend, new or as it was left in the folder; the shared one on this process's own server."""
    if backend == "shared":
        # One shard: order among sites is kept within a shard.
        return open_store(f"{server_url()}?prefix={folder.name}&shards=1", collection="tests", period_s=PERIOD_S)
    url = "memory:" if backend == "memory" else f"rocksdb://{folder}"
    return open_store(url, collection="tests", period_s=PERIOD_S)


@functools.cache
def server_url() -> str:
    """A real Valkey for the stores of this process, until it ends."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    url, _ = stack.enter_context(single())
    return url


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
    return Outcome(lease.id, kind, crawled(lease.record, at, bucket=bucket))


def active(store: FrontierStore, site: str = SITE, *, owner: str = "ant", until: float = 1e9) -> SiteLease:
    """The lease of a site that has URLs: whatever is due before it becomes active too."""
    found = store.sites.activate(10**6, owner=owner, until=until, at=1e8)
    return next(one for one in found if one.site == site)


def refill(lease: SiteLease, n: int, *, queue: Queue, horizon: Sequence[float] = ALWAYS) -> Refill:
    """Up to `n` URLs of one queue."""
    if queue == "immediate":
        return Refill(lease, immediate=n)
    return Refill(lease, never_crawled=n) if queue == "never-crawled" else Refill(lease, recrawl=n, horizon=horizon)


def lease(
    store: FrontierStore, site: SiteLease, n: int, *, queue: Queue = "never-crawled", horizon: Sequence[float] = ALWAYS
) -> list[Lease]:
    """Lease up to `n` URLs of one queue; none when the site lease is lost."""
    (dealt,) = store.queues.lease([refill(site, n, queue=queue, horizon=horizon)])
    return [] if dealt is None else dealt.immediate + dealt.never_crawled + dealt.recrawl


def recrawl_due(store: FrontierStore, site: SiteLease) -> list[tuple[int, float]]:
    """Each recrawl lane's first order, as a lease tells it that finds nothing due."""
    (dealt,) = store.queues.lease([Refill(site, recrawl=1, horizon=[-1.0] * LANES)])
    assert dealt is not None
    return dealt.lanes


def numbers(leases: Sequence[Lease]) -> list[int]:
    """The pages' numbers, as `link` took them."""
    return [int.from_bytes(one.key, "big") for one in leases]
