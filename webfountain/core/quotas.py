"""From a plan to what the sequencers use: whole-page quotas, the weight p, and the phase-clock increments.

A plan speaks of fractions of pages; a crawl fetches whole ones. Quotas follow the plan by largest remainder and
use the capacity exactly: no page that is there would still fit. What rounding takes from a bucket is carried to
its next period, so that a bucket planned at a third of a page a period is visited every third period.

Place in the walk (DESIGN 4): optimizer -> **quotas** -> weights of the site sequencers and the recrawl share of
each bucket. It chooses no page: selection inside a bucket is the sequencers'.

Source: Edwards 2001, section 3, "what the crawler uses": x[i,t]/b[i,t] and z[t]; the rounding is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from webfountain.core.model import Array, Instance, fractions, simulate_plan

__all__ = ["Quotas", "make_quotas"]

Counts = npt.NDArray[np.int64]

_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class Quotas:
    """What to fetch in each period.

    ``recrawl`` (T, B) and ``fresh`` (T,) are whole pages, of the known and of the never-crawled ones.
    ``weight`` (T,) is p, the never-crawled share of the planned fetches; 0.5 in a period that plans none.
    ``increment`` (T, B) is what each bucket's phase clock gains: the crawled fraction of the bucket.
    """

    recrawl: Counts
    fresh: Counts
    weight: Array
    increment: Array


def make_quotas(instance: Instance, x: Array, z: Array) -> Quotas:
    """The quotas of the plan ``x`` (T, B), ``z`` (T,) in pages.

    Invariant: quotas are never negative, never above the pages that the plan expects to be there, and in each
    period cost at most the capacity. A period that plans to use its capacity leaves less than one page's time.
    """
    path = simulate_plan(instance, x, z)
    wanted = np.column_stack([path.x, path.z])
    present = np.floor(np.column_stack([path.b[:-1], path.n[:-1]]) + _DUST).astype(np.int64)
    cost = np.column_stack([instance.c, instance.d])
    given, carried = np.zeros_like(present), np.zeros(instance.B + 1)
    for t in range(instance.T):
        given[t] = _whole(wanted[t], carried, present[t], cost[t], _room(instance, path.used, t))
        carried = np.clip(carried + wanted[t] - given[t], -1.0, 1.0)
    increment, _ = fractions(instance, path.x, path.z)
    return Quotas(given[:, :-1], given[:, -1], _weights(path.x.sum(axis=1), path.z), increment)


def _room(instance: Instance, used: Array, t: int) -> float:
    """The time to spend in a period: all of it if the plan leaves less than half a page, else what it uses."""
    dearest = max(float(instance.c[t].max(initial=0.0)), float(instance.d[t]))
    capacity = float(instance.C[t])
    return capacity if capacity - used[t] < 0.5 * dearest else float(used[t])


def _whole(wanted: Array, carried: Array, present: Counts, cost: Array, room: float) -> Counts:
    """Whole pages (B+1,) for one period: floors, then a page each by largest remainder, then what still fits."""
    given = np.minimum(np.floor(wanted + _DUST).astype(np.int64), present)
    left = room * (1.0 + 1e-12) + _DUST * cost.max(initial=0.0) - float(given @ cost)
    order = np.argsort(-(wanted + carried - given), kind="stable")
    for k in order:
        if given[k] < present[k] and cost[k] <= left and (wanted[k] > _DUST or carried[k] > 0.0):
            given[k] += 1
            left -= cost[k]
    for k in order:
        if 0.0 < cost[k] <= left:
            more = min(int(left / cost[k]), int(present[k] - given[k]))
            given[k] += more
            left -= more * cost[k]
    return given


def _weights(old: Array, new: Array) -> Array:
    both = old + new
    return np.asarray(np.divide(new, both, out=np.full(both.size, 0.5), where=both > 0.0), dtype=np.float64)
