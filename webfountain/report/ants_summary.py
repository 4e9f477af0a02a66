"""The report of a crawl with many ants: the sum of their reports, with the page states from the store at the end."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.store.answers import Statistics

__all__ = ["added_up"]

_PARTS: Final = (
    "seconds",
    "startup_seconds",
    "finish_reason",
    "waiting",
    "pages",
    "sites",
    "url_cache_hit_rate",
)
"""Keys of a report that are not summed."""


def added_up(
    reports: Sequence[Mapping[str, Any]],
    stored: Statistics | None,
    *,
    seconds: float,
    failed: Sequence[str],
    stopped: bool,
) -> dict[str, Any]:
    """Return the reports of all ants as one.

    If `stored` is None, because the store did not answer in time, the states come from the ant that saw the most
    pages.

    Raises
    ------
    StoreError
        if no ant has reported anything.
    """
    from webfountain.core.url_cache import hit_rate  # noqa: PLC0415  numpy costs 0.1 s of start-up

    if not reports:
        raise StoreError("; ".join(failed) or "no ant has sent a report")
    total: dict[str, Any] = {}
    for name, value in reports[0].items():
        if name in _PARTS:
            continue
        total[name] = dict(_summed(name, reports)) if isinstance(value, dict) else sum(each[name] for each in reports)
    reasons = {each["finish_reason"] for each in reports}
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = time.process_time()
    return {
        **total,
        "url_cache_hit_rate": hit_rate(
            total["duplicates_by_cache"], total["urls_discovered"] + total["duplicates_by_store"]
        ),
        **_states(reports, stored),
        "seconds": seconds,
        "cpu_seconds": own + children.ru_utime + children.ru_stime,
        "startup_seconds": min(each["startup_seconds"] for each in reports),
        "finish_reason": "shutdown" if stopped else reasons.pop() if len(reasons) == 1 else "finished",
        "ants": len(reports) + len(failed),
        "ants_failed": list(failed),
    }


def _states(reports: Sequence[Mapping[str, Any]], stored: Statistics | None) -> dict[str, Any]:
    """Return the pages in each state, the number of sites, and the waiting URLs."""
    if stored is None:
        latest = max(reports, key=lambda each: sum(each["pages"].values()))
        return {name: latest[name] for name in ("waiting", "pages", "sites")}
    return {
        "waiting": stored.pages["never-crawled"] + stored.immediate,
        "pages": dict(stored.pages),
        "sites": stored.sites,
    }


def _summed(name: str, reports: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    keys = sorted({key for each in reports for key in each[name]})
    return ((key, sum(each[name].get(key, 0) for each in reports)) for key in keys)
