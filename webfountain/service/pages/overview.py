"""The values for a collection's overview: state, history, what limits the crawl, what needs attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from webfountain.errors import InputError
from webfountain.history.live import STALE_S
from webfountain.history.sample import summed
from webfountain.report.plurals import counted
from webfountain.service.pages.charts import Series, bars, lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.api.answers import HistoryAnswer, SiteAnswer, StatusAnswer
    from webfountain.api.collection import StoredCollection
    from webfountain.history.live import LiveSnapshot
    from webfountain.store.site_orders import SiteOrder

__all__ = [
    "OverviewForm",
    "OverviewQuery",
    "attention",
    "first_sites",
    "live_figures",
    "overview",
    "set_pause",
    "summary_of",
]

_DAY: Final = 86400.0
_SPANS: Final[dict[str, tuple[float, Literal["minute", "hour", "day"], float]]] = {
    "hours": (2 * 3600.0, "minute", 60.0),
    "days": (4 * _DAY, "hour", 3600.0),
    "months": (120 * _DAY, "day", _DAY),
}
"""Maps each time span to (its length in seconds, the step of the history, the length of the step in seconds)."""
_FAILING: Final = 0.1
"""A collection needs attention if more than this share of its pages fail."""
_LAG_S: Final = 1.0
_HELD: Final = ("new", "changed", "minor", "same", "not_modified")


class OverviewQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the overview."""

    span: Literal["hours", "days", "months"] = "hours"


class OverviewForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The button that pauses or resumes the crawl."""

    act: Literal["pause", "resume"]


def overview(collection: StoredCollection, query: OverviewQuery) -> Mapping[str, Any]:
    found = summary_of(collection)
    at = found["status"].at
    span, step, seconds = _SPANS[query.span]
    history = collection.history(step, since=at - span)[-200:]
    hours = collection.history("hour", since=at - _DAY)
    plan = collection.details.plan(at=at).plan
    times = [each.at for each in history]
    return found | {
        "span": query.span,
        "step": step,
        "history": history,
        "day": summed(each.outcomes for each in hours),
        "day_links": sum(each.links_new for each in hours),
        "plan": plan,
        "errors": summed(each.errors for each in history).most_common(20),
        "limits": summed(each.limits for each in history).most_common(8),
        "failing_sites": _failing(found["live"]),
        "failed_sites": [
            each for each in first_sites(collection, "failed", limit=15) if each.pages.get("failed") or each.error
        ],
        "freshness_chart": _freshness_chart(times, history),
        "fetches_chart": _fetches_chart(times, history, seconds),
        "planned_chart": _planned_chart(times, history),
    }


def summary_of(collection: StoredCollection) -> dict[str, Any]:
    """Return the values that the home page shows about a collection."""
    status, live = collection.status(), collection.live()
    recent = collection.history(since=status.at - 3600.0)
    alive = [each for each in live if status.at - each.at < STALE_S]
    return {
        "status": status,
        "live": alive,
        "recent": recent[-1] if recent else None,
        "figures": live_figures(alive),
        "attention": attention(status, live, recent),
    }


def first_sites(collection: StoredCollection, order: SiteOrder, *, limit: int) -> list[SiteAnswer]:
    """Return the first sites in a sort order, or [] if the store does not support the order."""
    try:
        found, _ = collection.sorted_sites(order, limit=limit)
    except InputError:
        return []
    return found


def live_figures(live: Sequence[LiveSnapshot]) -> dict[str, Any]:
    """Return the live figures, such as the rate of fetches, summed over the crawling processes."""
    return {
        "fetched": sum(each.fetched for each in live),
        "rate": sum(each.pages_per_second for each in live),
        "in_flight": sum(each.in_flight for each in live),
        "active_sites": sum(each.active_sites for each in live),
        "immediate": sum(each.immediate for each in live),
        "limit": live[0].limit if live else None,
        "waits": summed(each.waits for each in live).most_common(),
    }


def attention(status: StatusAnswer, live: Sequence[LiveSnapshot], recent: Sequence[HistoryAnswer]) -> list[str]:
    """Return sentences about what needs an operator's attention."""
    held = status.pages.get("crawled", 0)
    alive = [each for each in live if status.at - each.at < STALE_S]
    found = []
    if not status.crawling:
        found.append("No crawl has this store open, so the copies get older.")
    elif live and not alive:
        found.append("The crawl has sent no sign of life for half a minute.")
    if held and status.failing > _FAILING * held:
        found.append(f"Of {counted(held, 'held page')}, {status.failing:,} failed at the last fetch.")
    found += [
        f"The process {each.owner} is overloaded: its event loop is {each.lag_s:.1f} s late."
        for each in alive
        if each.lag_s > _LAG_S
    ]
    if recent and sum(recent[-1].errors.values()) > sum(recent[-1].outcomes.get(kind, 0) for kind in _HELD):
        found.append("More fetches fail than succeed.")
    if status.domains is not None and status.domains.blocked:
        found.append(f"Domains that have used their share of the fetches: {status.domains.blocked}.")
    return found


def set_pause(collection: StoredCollection, form: OverviewForm) -> Mapping[str, Any]:
    """Pause or resume the crawl."""
    collection.pause() if form.act == "pause" else collection.resume()
    words = (
        "The crawl stops its requests within a second." if form.act == "pause" else "The crawl resumes within a second."
    )
    return {"done": words}


def _failing(live: Sequence[LiveSnapshot]) -> list[Any]:
    failing = [site for each in live for site in each.live if site.failures or site.word]
    return sorted(failing, key=lambda site: -site.failures)[:50]


def _freshness_chart(times: Sequence[float], history: Sequence[HistoryAnswer]) -> object:
    found = Series(
        "fresh",
        [each.freshness for each in history],
        [each.freshness_low for each in history],
        [each.freshness_high for each in history],
    )
    return lines("Estimated share of fresh pages over time", times, [found], as_percent=True)


def _fetches_chart(times: Sequence[float], history: Sequence[HistoryAnswer], step: float) -> object:
    kinds = {
        "unchanged": ("same", "not_modified"),
        "new": ("new",),
        "changed": ("changed", "minor"),
        "gone or redirected": ("gone", "redirected"),
        "failed": ("failed",),
    }
    series = [
        Series(name, [sum(each.outcomes.get(word, 0) for word in words) for each in history])
        for name, words in kinds.items()
    ]
    return bars("Fetches by outcome over time", times, series, step=step)


def _planned_chart(times: Sequence[float], history: Sequence[HistoryAnswer]) -> object:
    planned: list[float | None] = [each.planned for each in history]
    if all(each is None for each in planned):
        return ""
    done: list[float | None] = [each.fetches for each in history]
    return lines("Planned and done fetches over time", times, [Series("planned", planned), Series("done", done)])
