"""Figures of crawls in the text format of Prometheus.

The figures come from the live snapshots and from the status of the stores; this module counts nothing. No label names a
site, so the number of series is bounded. When a process ends, the scrape no longer contains its series. The names of
metrics begin with ``webfountain_``, and their values are in base units.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from webfountain import __version__
from webfountain.history.live import STALE_S
from webfountain.metrics import HISTOGRAMS, STATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prometheus_client.core import Metric

    from webfountain.history.live import LiveSnapshot

__all__ = ["CONTENT_TYPE", "Figures", "exposition"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "outcome": ("pages_fetched", "outcome"),
    "fetch/status": ("responses", "code"),
    "fetch/error": ("fetch_errors", "error"),
    "sitemap/error": ("sitemap_errors", "error"),
    "duplicates": ("links", "decision"),
    "judge": ("links_refused", "reason"),
    "ant": ("leases", "event"),
    "politeness": ("politeness", "event"),
    "robots": ("robots", "event"),
    "sitemap": ("sitemaps", "event"),
    "controller": ("plans", "event"),
    "sequencer": ("queued_fetches", "queue"),
}
"""Maps the first part of a stat's name, before "/", to a counter and a label. The part of a stat's name after "/" is
the label's value."""
_ALONE: Final[Mapping[str, str]] = {
    "fetch/started": "fetches_started",
    "fetch/bytes": "fetch_bytes",
    "fetch/seconds": "fetch_seconds",
    "links/seen": "links_seen",
}
"""Maps a stat without a label to the name of its counter."""
_DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "fetch/duration": "fetch_duration_seconds",
    "due/lag": "due_lag_seconds",
    "batch/duration": "batch_duration_seconds",
}
"""Maps a distribution to the name of its histogram."""
_OTHER: Final = "events"
_GAUGES: Final[Mapping[str, tuple[str, str]]] = {
    "last_snapshot_timestamp_seconds": ("at", "Time of the last snapshot, UTC seconds."),
    "event_loop_lag_seconds": ("lag_s", "Delay of the process's event loop at its last snapshot."),
    "fetches_per_second": ("pages_per_second", "Settled fetches per second, over the last ten seconds."),
    "sites": ("sites", "Known sites of the store."),
    "sites_active": ("active_sites", "Sites on the active list of the process."),
    "leases_held": ("leased", "URLs that are leased."),
    "fetches_in_flight": ("in_flight", "Requests under way."),
    "immediate_urls": ("immediate", "URLs on the immediate queue."),
    "pending_visits": ("pending_visits", "Fetched pages that are not written yet."),
    "pending_bytes": ("pending_bytes", "Bytes of bodies that are not written yet."),
}
"""Maps a gauge to the attribute of the snapshot that contains its value, and to its help text."""


class Figures(NamedTuple):
    """Figures of one collection at one time, for a scrape."""

    collection: str
    available: bool
    at: float
    live: Sequence[LiveSnapshot] = ()
    freshness: float | None = None
    failing: int | None = None
    store_bytes: int | None = None
    repository_bytes: int | None = None


class _Families:
    """Collector of the metrics of one scrape."""

    def __init__(self, figures: Iterable[Figures], streams: int | None) -> None:
        self._figures = list(figures)
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        """Yield each metric family of the scrape."""
        build = GaugeMetricFamily("webfountain_build_info", "The version of webfountain.", labels=["version"])
        build.add_metric([__version__], 1.0)
        yield build
        if self._streams is not None:
            yield GaugeMetricFamily("webfountain_event_streams", "Open event streams.", value=self._streams)
        yield from self._of_collections()
        yield from self._of_processes()
        yield from _counters(self._figures)
        yield from _histograms(self._figures)

    def _of_collections(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("webfountain_store_up", "1 if the store can be read.", labels=["collection"])
        fresh = GaugeMetricFamily(
            "webfountain_freshness_ratio", "Estimated share of the known pages whose copy is fresh.",
            labels=["collection"],
        )  # fmt: skip
        failing = GaugeMetricFamily(
            "webfountain_failing_pages", "Held pages whose last fetch failed.", labels=["collection"]
        )
        sizes = GaugeMetricFamily("webfountain_disk_bytes", "Bytes on the disk.", labels=["collection", "of"])
        for each in self._figures:
            up.add_metric([each.collection], float(each.available))
            for family, value in ((fresh, each.freshness), (failing, each.failing)):
                if value is not None:
                    family.add_metric([each.collection], value)
            for name, size in (("store", each.store_bytes), ("repository", each.repository_bytes)):
                if size is not None:
                    sizes.add_metric([each.collection, name], size)
        yield from (up, fresh, failing, sizes)

    def _of_processes(self) -> Iterator[Metric]:
        gauges = {
            name: GaugeMetricFamily(f"webfountain_{name}", text, labels=["collection", "ant"])
            for name, (_, text) in _GAUGES.items()
        }
        pages = GaugeMetricFamily("webfountain_pages", "Known URLs.", labels=["collection", "state"])
        waits = GaugeMetricFamily(
            "webfountain_sites_waiting", "Active sites, by the reason why they wait.",
            labels=["collection", "ant", "reason"],
        )  # fmt: skip
        for each, found in _alive(self._figures):
            for name, (attribute, _) in _GAUGES.items():
                gauges[name].add_metric([each.collection, found.owner], getattr(found, attribute))
            for reason, many in sorted(found.waits.items()):
                waits.add_metric([each.collection, found.owner, reason], many)
        for each in self._figures:
            if each.live:
                for state, many in max(each.live, key=lambda found: found.at).pages.items():
                    pages.add_metric([each.collection, state], many)
        yield from (*gauges.values(), pages, waits)


def exposition(figures: Iterable[Figures], *, streams: int | None = None) -> bytes:
    """Return the metrics of all collections, for one scrape. `streams` is the number of open event streams of the
    service."""
    return bytes(generate_latest(_Families(figures, streams)))


def _alive(figures: Iterable[Figures]) -> Iterator[tuple[Figures, LiveSnapshot]]:
    """Return the snapshots of live processes. A process counts as alive until its snapshot is older than STALE_S."""
    for each in figures:
        for found in each.live:
            if each.at - found.at < STALE_S:
                yield each, found


def _counters(figures: Sequence[Figures]) -> Iterator[Metric]:
    families: dict[str, CounterMetricFamily] = {}
    for each, found in _alive(figures):
        for stat, many in found.counts.items():
            if stat.removesuffix("_sum") in HISTOGRAMS or stat.rpartition("/")[0] in HISTOGRAMS:
                continue
            name, label, event = _family_of(stat)
            labels = ["collection", "ant", *([label] if label else [])]
            family = families.get(name)
            if family is None:
                family = families[name] = CounterMetricFamily(f"webfountain_{name}", _sentence(stat), labels=labels)
            family.add_metric([each.collection, found.owner, *([event] if label else [])], many)
    yield from (families[name] for name in sorted(families))


def _histograms(figures: Sequence[Figures]) -> Iterator[Metric]:
    for stat, name in _DISTRIBUTIONS.items():
        family = HistogramMetricFamily(f"webfountain_{name}", STATS[f"{stat}/*"].sentence, labels=["collection", "ant"])
        for each, found in _alive(figures):
            many, buckets = 0.0, []
            for bound in (*HISTOGRAMS[stat], inf):
                many += found.counts.get(f"{stat}/{bound:g}", 0.0)
                buckets.append(("+Inf" if bound == inf else f"{bound:g}", many))
            if many:
                family.add_metric([each.collection, found.owner], buckets, found.counts.get(f"{stat}_sum", 0.0))
        yield family


def _family_of(stat: str) -> tuple[str, str | None, str]:
    """Return the metric family of a stat, its label, and the label's value."""
    if stat in _ALONE:
        return _ALONE[stat], None, ""
    room, _, event = stat.rpartition("/")
    name, label = _COUNTERS.get(room, (_OTHER, "event"))
    return name, label, event if name != _OTHER else stat


def _sentence(stat: str) -> str:
    """Return the help text of a metric family: a sentence that says what the family counts."""
    room = stat.rpartition("/")[0]
    found = STATS.get(f"{room}/*") or STATS.get(stat)
    if room in _COUNTERS:
        return f"What the crawl counted of {room}, by {_COUNTERS[room][1]}."
    return "Other counts of the crawl." if found is None or stat not in _ALONE else found.sentence
