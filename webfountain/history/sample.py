"""A sample: the figures of a crawl over one minute, hour or day.

`rollup` merges several samples into one. `rollup` adds counts, takes states from the last sample, and averages
estimates over the time in which they were known. A sample takes about 200 bytes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar, get_args

import msgspec

from webfountain.records import FETCHED, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["MAX_WORDS", "OUTCOMES", "HistorySample", "bounded", "outcome_counts", "rollup", "summed"]

OUTCOMES: Final[tuple[OutcomeKind, ...]] = get_args(OutcomeKind)
"""Order of `HistorySample.outcomes`. New kinds of outcome must be added at the end."""
MAX_WORDS: Final = 32
"""Maximum number of different error words, and of different rate limits, in a sample; the rest is counted as
`other`.
"""
_OTHER: Final = "other"
_T = TypeVar("_T")


class HistorySample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a crawl did in a time span that begins at `at`, and the state of the crawl at the end of the span. New
    fields must be added at the end, with a default.
    """

    at: float
    """Start of the minute, hour or day, UTC seconds."""
    seconds: float
    """How long a crawl was running within the time span, in seconds."""
    pages: tuple[int, ...] = ()
    """Number of known URLs by state at the end of the span, in the order of `records.STATES`."""
    sites: int = 0
    active_sites: int = 0
    outcomes: tuple[int, ...] = ()
    """Number of settled fetches by outcome, in the order of `OUTCOMES`."""
    errors: dict[str, int] = {}
    """Number of fetches without an answer, by error word."""
    links_new: int = 0
    bytes: int = 0
    """Size of all received bodies after content decoding, bytes."""
    planned: float | None = None
    """Number of fetches that the plan scheduled for this time span; None without a plan."""
    freshness: float | None = None
    """Estimated share of the known pages whose copy matches the live page."""
    freshness_low: float | None = None
    freshness_high: float | None = None
    price: float | None = None
    """Price of a fetch at the end of the time span, in seconds. A known page is fetched only if this is expected to
    shorten the obsolete time of its copy by at least the price."""
    limits: dict[str, float] = {}
    """Maps each limit of the crawl's rate, in words, to the time for which the limit applied, in seconds."""
    store_bytes: int | None = None
    repository_bytes: int | None = None
    ants: int = 1
    """Largest number of processes that crawled at the same time."""

    @property
    def fetches(self) -> int:
        """Settled fetches."""
        return sum(many for kind, many in outcome_counts(self).items() if kind in FETCHED)


def outcome_counts(sample: HistorySample) -> dict[OutcomeKind, int]:
    """Return the number of settled fetches in a sample by the name of their outcome. Outcomes that only a later version
    knows are left out."""
    return dict(zip(OUTCOMES, sample.outcomes, strict=False))


def rollup(samples: Sequence[HistorySample], *, at: float) -> HistorySample:
    """Merge samples of one span, sorted by time, into one sample.

    Parameters
    ----------
    at : begin of the span, UTC seconds

    Raises
    ------
    ValueError
        when there are no samples.
    """
    if not samples:
        raise ValueError("a rollup needs at least one sample")
    last = samples[-1]
    with_interval = [each for each in samples if each.freshness_low is not None]
    planned = [each.planned for each in samples if each.planned is not None]
    return HistorySample(
        at=at,
        seconds=sum(each.seconds for each in samples),
        pages=last.pages,
        sites=last.sites,
        active_sites=last.active_sites,
        outcomes=_added([each.outcomes for each in samples]),
        errors={word: int(many) for word, many in bounded(summed(each.errors for each in samples)).items()},
        links_new=sum(each.links_new for each in samples),
        bytes=sum(each.bytes for each in samples),
        planned=sum(planned) if planned else None,
        freshness=_mean([(each.freshness, each.seconds) for each in with_interval or samples]),
        freshness_low=_mean([(each.freshness_low, each.seconds) for each in with_interval]),
        freshness_high=_mean([(each.freshness_high, each.seconds) for each in with_interval]),
        price=_last(each.price for each in samples),
        limits=bounded(summed(each.limits for each in samples)),
        store_bytes=_last(each.store_bytes for each in samples),
        repository_bytes=_last(each.repository_bytes for each in samples),
        ants=max(each.ants for each in samples),
    )


def bounded(counts: Mapping[str, float]) -> dict[str, float]:
    """Return the largest counts, at most MAX_WORDS, with the sum of the rest as `other`."""
    if len(counts) <= MAX_WORDS:
        return dict(counts)
    order = sorted(counts, key=lambda word: (word == _OTHER, -counts[word], word))
    kept = {word: counts[word] for word in order[: MAX_WORDS - 1]}
    return kept | {_OTHER: sum(counts[word] for word in order[MAX_WORDS - 1 :])}


def _added(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    width = max(map(len, rows))
    return tuple(sum(row[i] for row in rows if i < len(row)) for i in range(width))


def summed(parts: Iterable[Mapping[str, float]]) -> Counter[str]:
    """Add up dictionaries of counts or seconds, key by key."""
    total: Counter[str] = Counter()
    for part in parts:
        for word, many in part.items():
            total[word] += many  # type: ignore[assignment]  # seconds are no whole numbers
    return total


def _mean(values: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the mean value of (value, seconds) pairs, weighted by the seconds. Ignore pairs with the value None."""
    known = [(value, max(seconds, 1e-9)) for value, seconds in values if value is not None]
    if not known:
        return None
    mean = sum(value * seconds for value, seconds in known) / sum(seconds for _, seconds in known)
    return min(max(mean, min(value for value, _ in known)), max(value for value, _ in known))


def _last(values: Iterable[_T | None]) -> _T | None:
    found = None
    for value in values:
        found = found if value is None else value
    return found
