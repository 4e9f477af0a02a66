"""The optimiser: the best plan of a cycle that it can find, with a bound that says how good it must be.

SLSQP is the engine, on a working set. Few buckets (at most 16): SLSQP on every fraction from several starts, and
the calendars route; the better is kept. More: a mixture of calendars (`calendars`), then SLSQP on a working set.
``quality="high"`` starts again near the best plan, its split buckets drawn whole or its weights disturbed: where
a page belongs to two calendars, equation (2) makes their mixture dear, and drawing finds plans that split less.
Every plan is repaired to keep the capacity exactly and simulated again, so the objective is the plan's own.

Place in the walk (DESIGN 4): model -> calendars -> **optimizer** -> quotas. It reads no clock and no file, and
for the same instance and seed gives the same plan.

Source: Edwards 2001, section 4, where MINOS took ten minutes; the route is ours.

SLSQP on a working set: a plan made better where it pays, and kept within the capacity. Optima of the model are almost
bang-bang: of 3,570 fractions some 12 to 30 lie strictly inside (0, 1). So SLSQP gets a *working set*: those, the
bound fractions whose reduced gradient points inward, and g; its multipliers are the capacity prices that choose the
next working set. SLSQP's work grows with the cube of the set.

Place in the walk (DESIGN 4): model -> calendars -> **working set** -> the rest of the optimiser, which says where to
start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from webfountain.core.calendars import Mixture, bounded_mixture, growth_path
from webfountain.core.model import Array, Instance, capacity_jacobian, fractions, gradient, simulate, simulate_plan
from webfountain.errors import NotConverged

__all__ = [
    "Quality",
    "RepairedPlan",
    "Solution",
    "Solver",
    "better",
    "closed_fractions",
    "measured",
    "polished",
    "repaired",
    "solve",
    "uniform_plan",
]

Mask = npt.NDArray[np.bool_]

_INWARD = 40  # bound fractions taken into a working set
_LARGEST = 120  # interior fractions taken into a working set
_ROUNDS = 6
_LONG = 28  # periods above which half as many working sets as periods follow: each holds a smaller part of them
_EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class RepairedPlan:
    """A repaired plan on the scaled instance: ``u`` (T, B+1) holds f and, in the last column, g."""

    u: Array
    objective: float
    prices: Array
    route: str


def uniform_plan(instance: Instance) -> tuple[Array, Array]:
    """Fractions f (T, B) and g (T,) that crawl what is new and then the same share of every bucket."""
    closed = closed_fractions(instance)
    u = np.where(closed, 0.0, 1.0)
    return repaired(instance, u[:, :-1], u[:, -1])


def repaired(instance: Instance, f: Array, g: Array) -> tuple[Array, Array]:
    """The fractions lowered, period after period, where they use more than the capacity.

    Never-crawled pages keep their crawling time unless they alone are too many; old pages share what is left.
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
    """The plan repaired, with its objective."""
    f, g = repaired(instance, u[:, :-1], u[:, -1])
    objective = simulate(instance, f, g).objective
    return RepairedPlan(np.column_stack([f, g]), objective, prices, route)


def better(one: RepairedPlan, other: RepairedPlan) -> RepairedPlan:
    return other if other.objective < one.objective else one


def polished(instance: Instance, plan: RepairedPlan, *, route: str, everything: bool = False) -> RepairedPlan:
    """SLSQP on one working set after the other, until it gains nothing more. Never worse than ``plan``."""
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
    """``f`` (B,) scaled down to ``room``, at the expense of split buckets alone where they suffice.

    A solver's last digits would else turn every whole bucket into a split one.
    """
    excess = float(f @ cost) - room
    if excess <= 0.0:
        return f
    split = f * (f < 1.0)
    part = float(split @ cost)
    if excess < part:
        return np.where(f < 1.0, f * (1.0 - excess / part), f)
    return f * (room / (excess + room))


def _working_set(instance: Instance, plan: RepairedPlan) -> Mask:
    """Interior fractions, bound ones whose reduced gradient points inward, and g: a mask (T, B+1)."""
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


def _largest(score: Array, count: int) -> Mask:
    """The ``count`` largest scores above zero, as a mask; ties go to the earlier period, the faster bucket."""
    first = np.argsort(-score, axis=None, kind="stable")[:count]
    chosen = np.zeros(score.shape, dtype=np.bool_)
    chosen.flat[first] = score.flat[first] > _EDGE
    return chosen


def closed_fractions(instance: Instance) -> Mask:
    """Fractions (T, B+1) that stay 0: no time to crawl, or never a page in the bucket."""
    cost = np.column_stack([instance.c, instance.d])
    empty = np.append((instance.b0 <= 0.0) & (instance.p <= 0.0), False)
    return np.asarray(((instance.C[:, None] <= 0.0) & (cost > 0.0)) | empty, dtype=np.bool_)


class _Focus:
    """The model as a function of the chosen fractions alone, scaled to about 1, each point evaluated once."""

    def __init__(self, instance: Instance, plan: RepairedPlan, chosen: Mask) -> None:
        self.instance = instance
        self.u = plan.u
        self.rows, self.cols = np.nonzero(chosen)
        self.scale = max(plan.objective, _EDGE)
        self.room = np.maximum(instance.C, _EDGE)
        self._point: bytes = b""
        self._values: tuple[float, Array, Array, Array] = (0.0, self.u[0], self.u[0], self.u[0])

    def at(self, v: Array) -> Array:
        """All fractions (T, B+1) when the chosen ones are ``v``."""
        u = self.u.copy()
        u[self.rows, self.cols] = v
        return u

    def values(self, v: Array) -> tuple[float, Array, Array, Array]:
        """Objective, its gradient, slack of each capacity row, the slack's Jacobian."""
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
        """Derivative (T, chosen) of the used capacity, over the capacity."""
        k = self.instance
        K, M = capacity_jacobian(k, f, g, simulate(k, f, g))
        found = np.column_stack([k.o, k.w - 1.0])[self.rows, self.cols]
        whole = np.column_stack([b[:-1], n[:-1]])[self.rows, self.cols]
        slope = found * K[:, self.rows]
        slope += np.where(self.cols == k.B, M[:, self.rows], 0.0)
        slope[self.rows, np.arange(self.rows.size)] += np.column_stack([k.c, k.d])[self.rows, self.cols]
        return np.asarray(slope * whole / self.room[:, None], dtype=np.float64)


def _slsqp(instance: Instance, plan: RepairedPlan, chosen: Mask, route: str) -> RepairedPlan:
    """One run of SLSQP on the chosen fractions; its multipliers are the next prices of capacity."""
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


Solver = Literal["auto", "slsqp", "calendars"]
Quality = Literal["normal", "high"]

_FEW = 16 * 15  # fractions, as of 14 periods and 16 buckets, up to which SLSQP on everything is quick
_RESTARTS = {"normal": 0, "high": 24}
_FEW_RESTARTS = {"normal": 4, "high": 32}
_COLD_STARTS = {"normal": 2, "high": 8}


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan and what is known about it.

    ``x`` (T, B) and ``z`` (T,) are pages, ``f`` and ``g`` the same as fractions. ``excess`` is
    crawling time beyond the capacity (0 but for rounding). ``bound`` holds for every plan with these z, ``gap`` is
    (objective - bound) / objective. ``status`` is "solved", or "fallback" where no solver got further than the
    uniform plan; ``message`` names the route that found it. ``prices`` (T,) is what one more second saves.
    """

    x: Array
    z: Array
    f: Array
    g: Array
    objective: float
    excess: float
    bound: float
    gap: float
    prices: Array
    status: str
    message: str


def solve(instance: Instance, *, solver: Solver = "auto", quality: Quality = "normal", seed: int = 0) -> Solution:
    """The best plan found. ``solver``: "slsqp" uses no calendars, "calendars" no cold start of SLSQP.

    BLAS is held to one thread meanwhile: on matrices of this size its threads only wait for each other.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        return _solved(instance, solver, quality, seed)


def _solved(instance: Instance, solver: Solver, quality: Quality, seed: int) -> Solution:
    scaled, factors = _scaled(instance)
    rng, few = np.random.default_rng(seed), _is_small(scaled)
    best, mixture = _start(scaled), None
    if solver == "slsqp" or (solver == "auto" and few):
        best = _cold(scaled, best, _COLD_STARTS[quality], rng)
    if solver != "slsqp":
        best, mixture = _by_calendars(scaled, best)
    held = _bounded(scaled, _Held(best, mixture, 0.0))
    if solver != "slsqp":
        held = _restarted(scaled, held, (_FEW_RESTARTS if few else _RESTARTS)[quality], rng)
    return _solution(instance, scaled, held, factors)


@dataclass(frozen=True, slots=True)
class _Held:
    """The best plan so far, the mixture at its z (none where HiGHS failed), and its conditional bound."""

    plan: RepairedPlan
    mixture: Mixture | None
    bound: float


def _is_small(instance: Instance) -> bool:
    return instance.T * (instance.B + 1) <= _FEW


def _start(instance: Instance) -> RepairedPlan:
    f, g = uniform_plan(instance)
    return measured(instance, np.column_stack([f, g]), np.zeros(instance.T), "uniform")


def _cold(instance: Instance, best: RepairedPlan, starts: int, rng: np.random.Generator) -> RepairedPlan:
    """SLSQP from the uniform plan and from random ones, on everything where that is quick."""
    begin, everything = best, _is_small(instance)
    for turn in range(starts):
        best = better(best, polished(instance, begin, everything=everything, route=f"slsqp {turn}"))
        u = np.where(closed_fractions(instance), 0.0, rng.random(best.u.shape))
        begin = measured(instance, u, best.prices, "random")
    return best


def _by_calendars(instance: Instance, best: RepairedPlan) -> tuple[RepairedPlan, Mixture | None]:
    try:
        mixture = bounded_mixture(instance)
    except NotConverged:
        return best, None
    path = simulate_plan(instance, mixture.f * growth_path(instance, mixture.z)[:-1], mixture.z)
    g = np.clip(fractions(instance, path.x, path.z)[1], 0.0, 1.0)
    return better(best, _polished_from(instance, mixture.f, g, mixture.prices, "calendars")), mixture


def _polished_from(instance: Instance, f: Array, g: Array, prices: Array, route: str) -> RepairedPlan:
    u = np.where(closed_fractions(instance), 0.0, np.column_stack([f, g]))
    return polished(instance, measured(instance, u, prices, route), route=route)


def _bounded(instance: Instance, held: _Held) -> _Held:
    """The mixture at the plan's own z, and its bound; without one, 0 is a bound of every plan."""
    u = held.plan.u
    z = simulate(instance, u[:, :-1], u[:, -1]).z
    try:
        mixture = bounded_mixture(instance, z=z, start=held.mixture, plan=u[:, :-1])
    except NotConverged:
        return replace(held, bound=0.0)
    return _Held(held.plan, mixture, max(mixture.bound, 0.0))


def _restarted(instance: Instance, held: _Held, restarts: int, rng: np.random.Generator) -> _Held:
    """Start again near the best plan: its split buckets drawn whole, every third time at disturbed weights."""
    for turn in range(restarts):
        if held.mixture is None:
            break
        draw = _disturbed if turn % 3 == 2 else _drawn_whole
        f, g = draw(instance, held.mixture, held.plan, rng), held.plan.u[:, -1]
        found = _polished_from(instance, f, g, held.mixture.prices, f"restart {turn + 1}")
        if found.objective < held.plan.objective * (1.0 - 1e-9):
            held = _bounded(instance, replace(held, plan=found))
    return held


def _drawn_whole(instance: Instance, mixture: Mixture, plan: RepairedPlan, rng: np.random.Generator) -> Array:
    """The mixture's f (T, B), half of its split buckets given to one of their schedules."""
    f, pool = mixture.f.copy(), mixture.pool
    for bucket in np.flatnonzero(((f > 0.0) & (f < 1.0)).any(axis=0)):
        mine = np.flatnonzero(pool.owner == bucket)
        if mine.size and rng.random() < 0.5:
            f[:, bucket] = pool.share[:, rng.choice(mine)]
    return f


def _disturbed(instance: Instance, mixture: Mixture, plan: RepairedPlan, rng: np.random.Generator) -> Array:
    """The mixture's f (T, B) when the weights are a few per cent off."""
    off = replace(instance, oldwt=instance.oldwt * np.exp(0.02 * rng.standard_normal(instance.oldwt.shape)))
    f = plan.u[:, :-1]
    try:
        return bounded_mixture(off, z=simulate(instance, f, plan.u[:, -1]).z, start=mixture, plan=f).f
    except NotConverged:
        return f


def _scaled(instance: Instance) -> tuple[Instance, Array]:
    """The instance with 2 pages in a mean bucket, a mean page crawled in 1 s, and a largest weight of 1.

    The tolerances of HiGHS and SLSQP are absolute. Returns also the three factors: pages, seconds, weight.
    """
    k = instance
    total = float(k.b0.sum() + k.n0 + k.nconst.sum())
    pages = total / (2.0 * k.B) if total > 0.0 else 1.0
    seconds = _mean_or_one(np.append(k.c, k.d))
    weight = max(float(k.oldwt.max()), float(k.newwt.max())) or 1.0
    dearest = max(float(k.c.max()), float(k.d.max()))
    scaled = replace(
        k,
        c=k.c / seconds,
        d=k.d / seconds,
        C=np.minimum(k.C / (seconds * pages), 1e3 * k.B * max(1.0, dearest / seconds)),
        oldwt=k.oldwt / weight,
        newwt=k.newwt / weight,
        b0=k.b0 / pages,
        y0=k.y0 / pages,
        n0=k.n0 / pages,
        nconst=k.nconst / pages,
    )
    return scaled, np.array([pages, seconds, weight])


def _mean_or_one(costs: Array) -> float:
    mean = float(costs.mean())
    return mean if mean > 0.0 else 1.0


def _solution(instance: Instance, scaled: Instance, held: _Held, factors: Array) -> Solution:
    """The plan in the units of the instance, followed once more from its pages."""
    best, (pages, seconds, weight) = held.plan, factors
    planned = simulate(scaled, best.u[:, :-1], best.u[:, -1])
    path = simulate_plan(instance, planned.x * pages, planned.z * pages)
    f, g = fractions(instance, path.x, path.z)
    bound = min(held.bound * pages * weight, path.objective)
    return Solution(
        x=path.x,
        z=path.z,
        f=f,
        g=g,
        objective=path.objective,
        excess=float(np.maximum(path.used - instance.C, 0.0).max()),
        bound=bound,
        gap=(path.objective - bound) / path.objective if path.objective > 0.0 else 0.0,
        prices=best.prices * (weight / seconds),
        status="fallback" if held.mixture is None and best.route == "uniform" else "solved",
        message=f"found by {best.route}",
    )
