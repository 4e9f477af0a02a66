"""How a part of the web evolves: the analysis of Cho 2000 on a change trace or on a store.

Four questions of its section 3, for all pages and for each group: how often pages change (Figure 2), how long they
live (Figure 4), when half of them have changed or vanished (Figure 5), and whether changes are a Poisson process
(Figure 6), with a goodness of fit that the paper leaves to the eye. `histories` gives the input, `plots` draws.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.report.histories import Watch, Watched

__all__ = [
    "CHANGE_CLASSES",
    "LIFESPAN_CLASSES",
    "POISSON_MEANS",
    "Evolution",
    "GroupBy",
    "GroupEvolution",
    "PoissonCheck",
    "evolution",
]

GroupBy = Literal["site", "tld"]

CHANGE_CLASSES: Final = (("<= 1 day", 1.0), ("<= 1 week", 7.0), ("<= 1 month", 30.0), ("<= 4 months", 120.0))
"""Figure 2's classes of the average change interval and their upper ends in days; a fifth is beyond."""
LIFESPAN_CLASSES: Final = (("<= 1 week", 7.0), ("<= 1 month", 30.0), ("<= 4 months", 120.0))
"""Figure 4's classes of the visible lifespan; a fourth is beyond."""
POISSON_MEANS: Final = (10.0, 20.0)
"""Days: the mean intervals whose pages Figure 6 shows."""
POISSON_BAND: Final = 0.2
"""Pages with a mean interval within this share of 10 or 20 days count as near it (the paper prints no band)."""
POISSON_CHANGES: Final = 5
"""Pages with fewer changes are left out of it: they tell no mean."""
_BEYOND = "> 4 months"


class PoissonCheck(msgspec.Struct, frozen=True):
    """Intervals between the changes of pages near one mean, against the law that a Poisson process gives them.

    A daily visitor of a Poisson process sees whole-day intervals with P(k) = q (1-q)^(k-1), q = 1/mean: the
    exponential, rounded up. `distance` is Kolmogorov's, the greatest gap between both distribution functions,
    `critical` its 5 % point for independent intervals; `over_dispersion` is the variance of the intervals over that
    of the law: 1 for a Poisson process, more for bursts, less for regular changes.
    """

    mean: float
    """Days asked for."""
    pages: int
    intervals: int
    mean_found: float | None = None
    distance: float | None = None
    critical: float | None = None
    over_dispersion: float | None = None
    histogram: tuple[float, ...] = ()
    """Share of the intervals of 1, 2, … days (Figure 6), to four times the mean."""


class GroupEvolution(msgspec.Struct, frozen=True):
    """The four answers for one group of pages."""

    pages: int
    """Visible spans; a page that came back counts again."""
    changes: int
    never_changed: int
    change_interval: dict[str, float]
    """Figure 2: share of the pages by average change interval; pages that never changed are in the last class."""
    lifespan_seen: dict[str, float]
    """Figure 4, method 1: the time a page was seen."""
    lifespan_doubled: dict[str, float]
    """Figure 4, method 2: twice that for pages that touch the start or the end of the watch."""
    at_start: int
    """Pages of Figure 5: those there on the first day."""
    half_changed_days: int | None
    """Days until half of those had changed or vanished; None: more than half stayed as they were."""
    unchanged: tuple[float, ...]
    """Figure 5: share of those unchanged and there after 0, 1, … days."""
    poisson: tuple[PoissonCheck, ...]


class Evolution(msgspec.Struct, frozen=True):
    """The whole analysis."""

    start: float
    """UTC seconds."""
    days: int
    all: GroupEvolution
    groups: dict[str, GroupEvolution]
    """By name, the largest first."""


def evolution(watch: Watch, *, group_by: GroupBy = "site") -> Evolution:
    """Answer the four questions over all pages and in groups.

    Source: Cho 2000, sections 3.1-3.4.
    """
    groups: dict[str, list[Watched]] = {}
    for span in watch.spans:
        groups.setdefault(_group(span.site, group_by), []).append(span)
    largest = sorted(groups, key=lambda name: (-len(groups[name]), name))
    return Evolution(
        watch.start,
        watch.days,
        _answers(watch.spans, watch.days),
        {name: _answers(groups[name], watch.days) for name in largest},
    )


def _group(site: str, group_by: GroupBy) -> str:
    """A site by itself or by the last label of its host."""
    return site if group_by == "site" else "." + site.rpartition(".")[2]


def _answers(spans: Sequence[Watched], days: int) -> GroupEvolution:
    intervals = [span.watched / span.changes if span.changes else math.inf for span in spans]
    doubled = [span.watched * (2 if span.at_start or span.at_end else 1) for span in spans]
    unchanged = _unchanged(spans, days)
    half = next((day for day, share in enumerate(unchanged) if share <= 0.5), None)
    return GroupEvolution(
        pages=len(spans),
        changes=sum(span.changes for span in spans),
        never_changed=sum(not span.changes for span in spans),
        change_interval=_shares(intervals, CHANGE_CLASSES),
        lifespan_seen=_shares([span.watched for span in spans], LIFESPAN_CLASSES),
        lifespan_doubled=_shares(doubled, LIFESPAN_CLASSES),
        at_start=sum(span.at_start for span in spans),
        half_changed_days=half,
        unchanged=unchanged,
        poisson=tuple(_poisson(spans, mean) for mean in POISSON_MEANS),
    )


def _shares(values: Sequence[float], classes: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """Share of the values in each class; a class goes to its upper end inclusive."""
    names = [name for name, _ in classes] + [_BEYOND]
    at = np.searchsorted([end for _, end in classes], values, side="left")
    counts = Counter(at.tolist())
    return {name: counts[number] / max(1, len(values)) for number, name in enumerate(names)}


def _unchanged(spans: Sequence[Watched], days: int) -> tuple[float, ...]:
    """Share of the pages of day 0 that neither changed nor vanished within 0, 1, …, `days` days."""
    there = [span for span in spans if span.at_start]
    if not there:
        return ()
    never = days + 1
    ended = Counter(min(next(iter(span.days), never), never if span.at_end else span.last) for span in there)
    lost = np.cumsum([ended[day] for day in range(days + 1)])
    return tuple((1.0 - lost / len(there)).tolist())


def _poisson(spans: Sequence[Watched], mean: float) -> PoissonCheck:
    """The intervals of pages whose mean lies within POISSON_BAND of `mean` days.

    Every page of the band brings all its intervals, so pages with many changes weigh more: as in Figure 6.
    """
    often = [span for span in spans if span.changes >= POISSON_CHANGES]
    near = [span for span in often if abs(span.watched / span.changes - mean) <= POISSON_BAND * mean]
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
