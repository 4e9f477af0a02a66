"""The status of a crawl for the command `status`: counts by state, rate of fetches, and freshness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.core.change_rate import freshness
from webfountain.core.forecast import published
from webfountain.frontier.planning.collection_forecast import failing_pages
from webfountain.frontier.progress import published_limit
from webfountain.frontier.sites.domain_shares import SHARES, ShareSnapshot
from webfountain.records import STATES
from webfountain.store.contract import FORECAST

if TYPE_CHECKING:
    from webfountain.store.contract import FrontierStore

__all__ = ["status"]

_FIRST_SITES: Final = 1000
"""Maximum number of sites that are read to find the time when the store was created."""


def status(store: FrontierStore, *, at: float) -> dict[str, Any]:
    """Return counts by state, the rate of fetches, and the estimated freshness at the time `at`, UTC seconds."""
    counts = store.census.statistics()
    census = store.census.buckets()
    known = {state: counts.pages.get(state, 0) for state in STATES}
    # Failed pages that were never held are known but not fresh.
    missing = known["never-crawled"] + known["failed"]
    by_buckets = freshness(census, never_crawled=missing, at=at, fastest_s=store.census.fastest_s)
    failing = failing_pages(store.board)
    return {
        "pages": known,
        "known": sum(known.values()),
        "sites": counts.sites,
        "active_sites": counts.active_sites,
        "in_flight": counts.leased,
        "immediate": counts.immediate,
        "settled_too_late": counts.settle_lost,
        **_fresh(store, by_buckets, failing=failing / max(1, missing + known["crawled"])),
        "failing": failing,
        "limit": None if (limit := published_limit(store.board)) is None else limit.words,
        "domains": _domains(store),
        **_rate(store, at),
    }


def _fresh(store: FrontierStore, by_buckets: float | None, *, failing: float) -> dict[str, Any]:
    """Return the share of fresh pages, from the crawl's last forecast or else from the change rates of the pages.

    `failing` is the share of pages that failed at their last fetch; these pages do not count as fresh.
    `freshness_cycles` is the number of past planning cycles on which the forecast is based. `freshness_at` is the time
    of the forecast, or None without a forecast.
    """
    kept = published(store.board.value(FORECAST))
    outlook = None if kept is None else kept.forecast.now()
    if kept is None or outlook is None:
        return {
            "freshness": None if by_buckets is None else max(0.0, by_buckets - failing),
            "freshness_low": None,
            "freshness_high": None,
            "freshness_cycles": None,
            "freshness_at": None,
        }
    return {
        "freshness": max(0.0, 1.0 - outlook.median - failing),
        "freshness_low": max(0.0, 1.0 - outlook.high - failing),
        "freshness_high": max(0.0, 1.0 - outlook.low - failing),
        "freshness_cycles": outlook.cycles,
        "freshness_at": kept.forecast.observed_at,
    }


def _domains(store: FrontierStore) -> dict[str, Any] | None:
    """Return how many domains have used up their limit on fetches, as the crawl last reported. Return None if the crawl
    has no limit on fetches per domain."""
    kept = store.board.value(SHARES)
    if kept is None:
        return None
    seen = msgspec.msgpack.decode(kept, type=ShareSnapshot)
    return {"time": seen.at, "busy": seen.busy, "blocked": seen.blocked, "share": seen.share}


def _rate(store: FrontierStore, at: float) -> dict[str, Any]:
    """Return the number and rate of fetches since the later of two times: the start of the previous time period, and
    the discovery of the first site."""
    period_s = store.census.period_s
    before = int(at // period_s) - 1
    rows = store.census.rows(since=before)
    first = min((site.first_seen for site in store.sites.after("", _FIRST_SITES)), default=at)
    since = max(before * period_s, first)
    fetches = sum(row.fetches for row in rows)
    return {
        "since": since,
        "fetches": fetches,
        "changes": sum(row.changes for row in rows if row.bucket is not None),
        "first_fetches": sum(row.fetches for row in rows if row.bucket is None),
        "pages_per_second": fetches / (at - since) if at > since else 0.0,
    }
