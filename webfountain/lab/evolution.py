"""Analysis of how pages evolve (Cho 2000), from a change trace or a store.

Section 3 of the paper asks four questions: How often do pages change (Figure 2)? How long do pages live (Figure 4)?
When have half of the pages changed or vanished (Figure 5)? Are changes a Poisson process (Figure 6)?
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.lab.observations import Observation, PageSpan

__all__ = [
    "CHANGE_CLASSES",
    "LIFESPAN_CLASSES",
    "POISSON_BAND",
    "POISSON_CHANGES",
    "POISSON_MEANS",
    "Evolution",
    "GroupBy",
    "GroupEvolution",
    "PoissonCheck",
    "evolution",
]

GroupBy = Literal["site", "tld"]

CHANGE_CLASSES: Final = (("<= 1 day", 1.0), ("<= 1 week", 7.0), ("<= 1 month", 30.0), ("<= 4 months", 120.0))
"""Classes of average change intervals in Figure 2, each with its upper limit in days."""
LIFESPAN_CLASSES: Final = (("<= 1 week", 7.0), ("<= 1 month", 30.0), ("<= 4 months", 120.0))
"""Classes of visible lifespans in Figure 4, each with its upper limit in days."""
POISSON_MEANS: Final = (10.0, 20.0)
"""Mean change intervals of the pages in Figure 6, in days."""
POISSON_BAND: Final = 0.2
"""Figure 6 includes a page if its mean interval differs from 10 or 20 days by at most this share."""
POISSON_CHANGES: Final = 5
"""Figure 6 includes only pages with at least this many changes."""
_BEYOND = "> 4 months"


class PoissonCheck(msgspec.Struct, frozen=True):
    """Comparison of change intervals with the law of a Poisson process.

    If changes are a Poisson process, daily visits find an interval of k days with P(k) = q (1-q)^(k-1), q = 1/mean.
    `distance` is the Kolmogorov distance, the largest gap between the distribution functions. `critical` is the 5 %
    point of the Kolmogorov distance for independent intervals. `over_dispersion` is the variance of the intervals
    divided by the variance that they would have in a Poisson process; bursts raise it above 1.
    """

    mean: float
    """Requested mean interval, days."""
    pages: int
    intervals: int
    mean_found: float | None = None
    distance: float | None = None
    critical: float | None = None
    over_dispersion: float | None = None
    histogram: tuple[float, ...] = ()
    """Shares of the change intervals that last 1, 2, … days (Figure 6)."""


class GroupEvolution(msgspec.Struct, frozen=True):
    """Answers to the four questions of Cho 2000 for one group of pages."""

    pages: int
    """Number of visible spans of pages. A page that vanished and came back counts once for each span."""
    changes: int
    never_changed: int
    change_interval: dict[str, float]
    """Figure 2: share of the pages by average change interval."""
    lifespan_seen: dict[str, float]
    """Figure 4, method 1: share of the pages by visible time."""
    lifespan_doubled: dict[str, float]
    """Figure 4, method 2: share of the pages by visible time, doubled for pages visible at the start or the end."""
    at_start: int
    """Number of pages in Figure 5: the pages that exist on the first day."""
    half_changed_days: int | None
    """Days until half of the pages of the first day have changed or vanished; None if fewer than half ever did."""
    unchanged: tuple[float, ...]
    """Figure 5: share of the pages of the first day that are still there and unchanged after 0, 1, … days."""
    poisson: tuple[PoissonCheck, ...]


class Evolution(msgspec.Struct, frozen=True):
    start: float
    days: int
    all: GroupEvolution
    groups: dict[str, GroupEvolution]
    """The groups by name, beginning with the largest group."""


def evolution(observation: Observation, *, group_by: GroupBy = "site") -> Evolution:
    """Answer the four questions of Cho 2000 for all pages and for each group.

    Source: Cho 2000, sections 3.1-3.4.
    """
    groups: dict[str, list[PageSpan]] = {}
    for span in observation.spans:
        groups.setdefault(_group(span.site, group_by), []).append(span)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))
    return Evolution(
        observation.start,
        observation.days,
        _answers(observation.spans, observation.days),
        {name: _answers(groups[name], observation.days) for name in largest},
    )


def _group(site: str, group_by: GroupBy) -> str:
    """Return the group of a site: the site itself or the last label of its host name."""
    return site if group_by == "site" else "." + site.rpartition(".")[2]


def _answers(spans: Sequence[PageSpan], days: int) -> GroupEvolution:
    intervals = [span.observed_time / span.changes if span.changes else math.inf for span in spans]
    doubled = [span.observed_time * (2 if span.at_start or span.at_end else 1) for span in spans]
    unchanged = _unchanged(spans, days)
    half = next((day for day, share in enumerate(unchanged) if share <= 0.5), None)
    return GroupEvolution(
        pages=len(spans),
        changes=sum(span.changes for span in spans),
        never_changed=sum(not span.changes for span in spans),
        change_interval=_shares(intervals, CHANGE_CLASSES),
        lifespan_seen=_shares([span.observed_time for span in spans], LIFESPAN_CLASSES),
        lifespan_doubled=_shares(doubled, LIFESPAN_CLASSES),
        at_start=sum(span.at_start for span in spans),
        half_changed_days=half,
        unchanged=unchanged,
        poisson=tuple(_poisson(spans, mean) for mean in POISSON_MEANS),
    )


def _shares(values: Sequence[float], classes: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """Return the share of the values in each class."""
    names = [name for name, _ in classes] + [_BEYOND]
    at = np.searchsorted([end for _, end in classes], values, side="left")
    counts = Counter(at.tolist())
    return {name: counts[number] / max(1, len(values)) for number, name in enumerate(names)}


def _unchanged(spans: Sequence[PageSpan], days: int) -> tuple[float, ...]:
    """Return the share of the pages of day 0 that are still there and unchanged after 0, 1, …, `days` days."""
    there = [span for span in spans if span.at_start]
    if not there:
        return ()
    never = days + 1
    ended = Counter(min(next(iter(span.days), never), never if span.at_end else span.last) for span in there)
    lost = np.cumsum([ended[day] for day in range(days + 1)])
    return tuple((1.0 - lost / len(there)).tolist())


def _poisson(spans: Sequence[PageSpan], mean: float) -> PoissonCheck:
    """Compare intervals with the Poisson law, for pages whose mean interval is about `mean` days (POISSON_BAND).

    The check pools the intervals of all pages, so a page with more changes counts more, as in Figure 6.
    """
    often = [span for span in spans if span.changes >= POISSON_CHANGES]
    near = [span for span in often if abs(span.observed_time / span.changes - mean) <= POISSON_BAND * mean]
    gaps = np.concatenate([np.diff(span.days) for span in near]) if near else np.empty(0)
    if len(gaps) < 2 or (found := float(gaps.mean())) <= 1.0:
        return PoissonCheck(mean, len(near), len(gaps))
    longest = int(gaps.max())
    seen = np.bincount(gaps.astype(np.int64), minlength=longest + 1)[1:] / len(gaps)
    law = 1.0 - (1.0 - 1.0 / found) ** np.arange(1, longest + 1)
    return PoissonCheck(
        mean,
        len(near),
        len(gaps),
        mean_found=found,
        distance=float(np.abs(np.cumsum(seen) - law).max()),
        critical=1.358 / math.sqrt(len(gaps)),
        over_dispersion=float(gaps.var(ddof=1) / (found * found - found)),
        histogram=tuple(seen[: int(4 * mean)].tolist()),
    )
