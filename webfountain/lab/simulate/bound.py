"""A lower bound on the obsolete share: no policy with the same number of fetches can have a smaller share.

A *spell* is the time between two events of a page. During a spell, a copy from before the spell is obsolete. A fetch
during a spell saves obsolete time, because its copy is fresh until the spell ends. Unused fetches may be kept for one
day, so a policy with K fetches per day makes at most 2K fetches on one day. For any price of a day's fetches and any
price of all fetches, the Lagrangian dual is an upper bound on the saved time. The smallest possible obsolete share lies
between the lower bound and the share of `clairvoyant`, a greedy policy with full knowledge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.lab.simulate.trace import DELETED

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.lab.simulate.trace import ChangeTrace

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["least_obsolete_share", "spells_of"]

_TRIES: Final = 400


def spells_of(trace: ChangeTrace) -> tuple[Ints, Ints]:
    """Return the days on which spells begin and end."""
    order = np.lexsort((np.arange(len(trace.day)), trace.page))
    page, day, kind = trace.page[order], trace.day[order], trace.kind[order]
    is_last = np.append(page[1:] != page[:-1], True) if len(page) else np.zeros(0, dtype=np.bool_)
    end = np.where(is_last, trace.days, np.append(day[1:], 0)[: len(day)])
    opens = (kind != DELETED) & (end > day)
    return day[opens], end[opens]


def least_obsolete_share(trace: ChangeTrace, fetches_per_day: int, alive_page_days: float) -> float:
    """Return the lower bound on the obsolete share. `alive_page_days` is the number of live pages, summed over all days
    (`Replay.alive`).
    """
    begin, end = spells_of(trace)
    saved = _most_saved(begin, end, trace.days, float(fetches_per_day))
    return float(max((end - begin).sum() - saved, 0.0) / max(alive_page_days, 1.0))


def _most_saved(begin: Ints, end: Ints, days: int, budget: float) -> float:
    """Return the smallest value of the Lagrangian dual that subgradient steps find, in page-days."""
    price, total_price = np.zeros(days + 1), 0.0
    best = float((end - begin - 1).clip(0).sum())
    for number in range(_TRIES):
        cost = np.arange(days + 1) + price
        cost[days] = days  # a fetch after the end saves nothing
        cheapest = np.minimum.accumulate(cost[::-1])[::-1]
        last = np.where(cost <= cheapest, np.arange(days + 1), days + 1)
        # For each day, the cheapest day for a fetch from this day on (the first of equals).
        on_day = np.minimum.accumulate(last[::-1])[::-1]
        gain = end - cheapest[begin + 1] - total_price
        made = (gain > 0) & (on_day[begin + 1] < days)
        value = gain[made].sum() + 2 * budget * price[:days].sum() + budget * days * total_price
        best = min(best, float(value))
        wanted = np.bincount(on_day[begin + 1][made], minlength=days + 1)[: days + 1]
        step = 2.0 / (1.0 + number) ** 0.5
        price[:days] = np.maximum(price[:days] + step * (wanted[:days] / max(2 * budget, 1.0) - 1.0), 0.0)
        total_price = max(total_price + step * (np.count_nonzero(made) / max(budget * days, 1.0) - 1.0), 0.0)
    return best
