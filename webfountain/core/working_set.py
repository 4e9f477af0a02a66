"""Improve a plan by SLSQP on a working set, and keep the plan within the capacity.

In an optimum of the model, few fractions lie strictly inside (0, 1): about 12 to 30 of 3,570. SLSQP gets a *working
set*: g, the fractions inside (0, 1), and those fractions at a bound that have an inward reduced gradient. The
multipliers of SLSQP are prices of capacity, by which the next working set is chosen. The running time of SLSQP grows
with the cube of the working set's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from webfountain.core.model import Instance, capacity_jacobian, gradient, simulate

if TYPE_CHECKING:
    from webfountain.core.arrays import Array, Flags

__all__ = ["RepairedPlan", "better", "closed_fractions", "measured", "polished", "repaired", "uniform_plan"]


_INWARD = 40  # largest number of fractions at a bound in a working set
_LARGEST = 120  # largest number of interior fractions in a working set
_ROUNDS = 6
_LONG = 28  # with more periods, there are periods / 2 rounds, because each working set covers a smaller part
_EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class RepairedPlan:
    """A plan that fits into the capacity of the scaled instance. ``u`` (T, B+1) contains f, with g as the last
    column."""

    u: Array
    objective: float
    prices: Array
    route: str


def uniform_plan(instance: Instance) -> tuple[Array, Array]:
    """Return the fractions f (T, B) and g (T,) that crawl all new pages and an equal share of every bucket."""
    closed = closed_fractions(instance)
    u = np.where(closed, 0.0, 1.0)
    return repaired(instance, u[:, :-1], u[:, -1])


def repaired(instance: Instance, f: Array, g: Array) -> tuple[Array, Array]:
    """Lower the fractions of each period until the plan fits into the capacity.

    Never-crawled pages get the capacity first, and known pages share the rest.
    """
    k, f, g = instance, f.copy(), g.copy()
    b, n = k.b0, k.n0
    for t in range(k.T):
        room = k.C[t] * (1.0 - 1e-14)
        fresh = k.d[t] * g[t] * n
        if fresh > room:
            g[t] *= room / fresh
            fresh = room
        f[t] = _lowered(f[t], k.c[t] * b, room - fresh)
        z = g[t] * n
        n = max(n + float((k.o[t] * f[t]) @ b) + (k.w[t] - 1.0) * z + k.nconst[t], 0.0)
        b = b + k.p * z
    return f, g


def measured(instance: Instance, u: Array, prices: Array, route: str) -> RepairedPlan:
    """Return the repaired plan with its objective."""
    f, g = repaired(instance, u[:, :-1], u[:, -1])
    objective = simulate(instance, f, g).objective
    return RepairedPlan(np.column_stack([f, g]), objective, prices, route)


def better(one: RepairedPlan, other: RepairedPlan) -> RepairedPlan:
    return other if other.objective < one.objective else one


def polished(instance: Instance, plan: RepairedPlan, *, route: str, everything: bool = False) -> RepairedPlan:
    """Run SLSQP on one working set after another until nothing improves. The result is never worse than ``plan``."""
    best, at = plan, plan
    rounds = _ROUNDS if instance.T <= _LONG else max(_ROUNDS, instance.T // 2)
    for _ in range(1 if everything else rounds):
        chosen = ~closed_fractions(instance) if everything else _working_set(instance, at)
        if not chosen.any():
            break
        at = _slsqp(instance, at, chosen, route)
        if not at.objective < best.objective * (1.0 - 1e-7):
            return better(best, at)
        best = at
    return best


def _lowered(f: Array, cost: Array, room: float) -> Array:
    """Return the fractions ``f`` (B,), lowered to fit into ``room``; those below 1 are lowered first."""
    excess = float(f @ cost) - room
    if excess <= 0.0:
        return f
    split = f * (f < 1.0)
    part = float(split @ cost)
    if excess < part:
        return np.where(f < 1.0, f * (1.0 - excess / part), f)
    return f * (room / (excess + room))


def _working_set(instance: Instance, plan: RepairedPlan) -> Flags:
    """Return the working set as a mask (T, B+1)."""
    u = plan.u
    path = simulate(instance, u[:, :-1], u[:, -1])
    slope = np.column_stack(gradient(instance, u[:, :-1], u[:, -1], path, prices=plan.prices))
    inside = (u > _EDGE) & (u < 1.0 - _EDGE)
    inward = np.where(u <= _EDGE, -slope, slope)
    closed = closed_fractions(instance)
    chosen = _largest(np.where(inside & ~closed, np.minimum(u, 1.0 - u), 0.0), _LARGEST)
    chosen |= _largest(np.where(inside | closed, 0.0, inward), _INWARD)
    chosen[:, -1] = ~closed[:, -1]
    return chosen


def _largest(score: Array, count: int) -> Flags:
    """Return a mask of the ``count`` largest scores above zero."""
    first = np.argsort(-score, axis=None, kind="stable")[:count]
    chosen = np.zeros(score.shape, dtype=np.bool_)
    chosen.flat[first] = score.flat[first] > _EDGE
    return chosen


def closed_fractions(instance: Instance) -> Flags:
    """Return a mask (T, B+1) of the fractions that must stay 0."""
    cost = np.column_stack([instance.c, instance.d])
    empty = np.append((instance.b0 <= 0.0) & (instance.p <= 0.0), False)
    return np.asarray(((instance.C[:, None] <= 0.0) & (cost > 0.0)) | empty, dtype=np.bool_)


class _Focus:
    """The model as a function of the chosen fractions, scaled to values of about 1."""

    def __init__(self, instance: Instance, plan: RepairedPlan, chosen: Flags) -> None:
        self.instance = instance
        self.u = plan.u
        self.rows, self.cols = np.nonzero(chosen)
        self.scale = max(plan.objective, _EDGE)
        self.room = np.maximum(instance.C, _EDGE)
        self._point: bytes = b""
        self._values: tuple[float, Array, Array, Array] = (0.0, self.u[0], self.u[0], self.u[0])

    def at(self, v: Array) -> Array:
        """Return all fractions (T, B+1) for the values ``v`` of the chosen fractions."""
        u = self.u.copy()
        u[self.rows, self.cols] = v
        return u

    def values(self, v: Array) -> tuple[float, Array, Array, Array]:
        """Return the objective and its gradient, and the unused capacity of each period and its Jacobian."""
        if (point := v.tobytes()) != self._point:
            self._point, self._values = point, self._evaluated(v)
        return self._values

    def _evaluated(self, v: Array) -> tuple[float, Array, Array, Array]:
        k, u = self.instance, self.at(v)
        f, g = u[:, :-1], u[:, -1]
        path = simulate(k, f, g)
        slope = np.column_stack(gradient(k, f, g, path))[self.rows, self.cols]
        slack = (k.C - path.used) / self.room
        return path.objective / self.scale, slope / self.scale, slack, -self._used_slope(f, g, path.b, path.n)

    def _used_slope(self, f: Array, g: Array, b: Array, n: Array) -> Array:
        """Return the derivative (T, chosen) of the used capacity, relative to the capacity."""
        k = self.instance
        K, M = capacity_jacobian(k, f, g, simulate(k, f, g))
        found = np.column_stack([k.o, k.w - 1.0])[self.rows, self.cols]
        whole = np.column_stack([b[:-1], n[:-1]])[self.rows, self.cols]
        slope = found * K[:, self.rows]
        slope += np.where(self.cols == k.B, M[:, self.rows], 0.0)
        slope[self.rows, np.arange(self.rows.size)] += np.column_stack([k.c, k.d])[self.rows, self.cols]
        return np.asarray(slope * whole / self.room[:, None], dtype=np.float64)


def _slsqp(instance: Instance, plan: RepairedPlan, chosen: Flags, route: str) -> RepairedPlan:
    """Run SLSQP once on the chosen fractions."""
    focus = _Focus(instance, plan, chosen)
    count = focus.rows.size
    rows: dict[str, Any] = {
        "type": "ineq",
        "fun": lambda v: focus.values(v)[2],
        "jac": lambda v: focus.values(v)[3],
    }
    found = minimize(
        lambda v: focus.values(v)[0],
        plan.u[focus.rows, focus.cols],
        jac=lambda v: focus.values(v)[1],
        method="SLSQP",
        bounds=np.column_stack([np.zeros(count), np.ones(count)]),
        constraints=rows,
        options={"maxiter": 60, "ftol": 1e-9},
    )
    if not np.isfinite(found.x).all():
        return plan
    u = focus.at(np.clip(found.x, 0.0, 1.0))
    u[u < _EDGE], u[u > 1.0 - _EDGE] = 0.0, 1.0
    prices = np.nan_to_num(np.maximum(found.multipliers, 0.0)) * focus.scale / focus.room
    return measured(instance, u, prices, route)
