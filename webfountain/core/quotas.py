"""Convert a plan into quotas in whole pages, the share of never-crawled pages, and the increments of the phase clocks.

Quotas are rounded by largest remainder, within the capacity. Fractions lost by rounding are carried over: a third of a
page per period becomes a page in every third period.

Source: Edwards 2001, section 3, "what the crawler uses": x[i,t]/b[i,t] and z[t]; the rounding is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.model import Instance, fractions, simulate_plan

if TYPE_CHECKING:
    from webfountain.core.arrays import Array, Ints

__all__ = ["Quotas", "make_quotas"]


_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class Quotas:
    """Numbers of pages to fetch in each period.

    ``recrawl`` (T, B) counts known pages, ``fresh`` (T,) never-crawled pages. ``weight`` (T,) is p, the never-crawled
    share of the planned fetches (0.5 without planned fetches). ``increment`` (T, B) is the gain of each bucket's phase
    clock: the crawled fraction of the bucket.
    """

    recrawl: Ints
    fresh: Ints
    weight: Array
    increment: Array


def make_quotas(instance: Instance, x: Array, z: Array) -> Quotas:
    """Return the quotas of the plan ``x`` (T, B), ``z`` (T,) in pages.

    A quota is never negative, and never above the number of pages that the plan expects to exist. In each period the
    quotas cost at most the capacity.
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
    """Return the seconds of fetching that the plan uses in a period. If what is left of the capacity is less than half
    the cost of the dearest fetch, return the whole capacity.
    """
    dearest = max(float(instance.c[t].max(initial=0.0)), float(instance.d[t]))
    capacity = float(instance.C[t])
    return capacity if capacity - used[t] < 0.5 * dearest else float(used[t])


def _whole(wanted: Array, carried: Array, present: Ints, cost: Array, room: float) -> Ints:
    """Return the (B+1,) quotas of one period, rounded by largest remainder, at a cost of at most `room`."""
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
