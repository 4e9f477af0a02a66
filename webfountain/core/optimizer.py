"""The optimiser finds a good plan of a cycle, and a bound on how good any plan could be.

SLSQP runs on a working set of fractions and starts from a mixture of calendars (`calendars`). If there are at most 16
buckets, SLSQP also runs on all fractions, and the better plan is kept. With ``quality="high"``, the optimiser restarts
near the best plan, to find plans with fewer partly crawled buckets. Before the objective of a plan is reported, the
plan is adjusted to fit the capacity exactly.

The same instance and seed give the same plan.

Source: Edwards 2001, section 4 (MINOS took ten minutes); the method is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from webfountain.core.calendars import Mixture, bounded_mixture, growth_path
from webfountain.core.model import Instance, fractions, simulate, simulate_plan
from webfountain.core.working_set import better, closed_fractions, measured, polished, uniform_plan
from webfountain.errors import NotConverged

if TYPE_CHECKING:
    from webfountain.core.arrays import Array
    from webfountain.core.working_set import RepairedPlan

__all__ = ["Quality", "Solution", "Solver", "solve"]

Solver = Literal["auto", "slsqp", "calendars"]
Quality = Literal["normal", "high"]

_FEW = 16 * 15  # SLSQP is fast on all fractions up to this number, which is that of 14 periods and 16 buckets
_RESTARTS = {"normal": 0, "high": 24}
_FEW_RESTARTS = {"normal": 4, "high": 32}
_COLD_STARTS = {"normal": 2, "high": 8}


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan with its objective, bound and prices.

    ``x`` (T, B) and ``z`` (T,) are pages; ``f`` and ``g`` are the corresponding fractions. ``excess`` is crawling time
    above the capacity (0 up to rounding). ``bound`` is a lower bound on the objective of all plans with the same ``z``.
    ``gap`` is (objective - bound) / objective. ``status`` is "solved", or "fallback" if no solver improved on the
    uniform plan. ``message`` names the method that found the plan. ``prices`` (T,) are the reductions of the objective
    per second of additional capacity.
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
    """Return the best plan found. The ``solver`` "slsqp" uses no calendars. With the ``solver`` "calendars", SLSQP
    starts only from a mixture of calendars.
    """
    # These matrices are too small for several threads.
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
    held = _bounded(scaled, _Incumbent(best, mixture, 0.0))
    if solver != "slsqp":
        held = _restarted(scaled, held, (_FEW_RESTARTS if few else _RESTARTS)[quality], rng)
    return _solution(instance, scaled, held, factors)


@dataclass(frozen=True, slots=True)
class _Incumbent:
    """The best plan so far, its mixture (None if HiGHS failed), and its lower bound."""

    plan: RepairedPlan
    mixture: Mixture | None
    bound: float


def _is_small(instance: Instance) -> bool:
    return instance.T * (instance.B + 1) <= _FEW


def _start(instance: Instance) -> RepairedPlan:
    f, g = uniform_plan(instance)
    return measured(instance, np.column_stack([f, g]), np.zeros(instance.T), "uniform")


def _cold(instance: Instance, best: RepairedPlan, starts: int, rng: np.random.Generator) -> RepairedPlan:
    """Run SLSQP first from `best` and then from random plans, and return the best result."""
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


def _bounded(instance: Instance, held: _Incumbent) -> _Incumbent:
    u = held.plan.u
    z = simulate(instance, u[:, :-1], u[:, -1]).z
    try:
        mixture = bounded_mixture(instance, z=z, start=held.mixture, plan=u[:, :-1])
    except NotConverged:
        return replace(held, bound=0.0)
    return _Incumbent(held.plan, mixture, max(mixture.bound, 0.0))


def _restarted(instance: Instance, held: _Incumbent, restarts: int, rng: np.random.Generator) -> _Incumbent:
    """Restart near the best plan: assign each partly crawled bucket to one schedule, or disturb the weights."""
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
    f, pool = mixture.f.copy(), mixture.pool
    for bucket in np.flatnonzero(((f > 0.0) & (f < 1.0)).any(axis=0)):
        mine = np.flatnonzero(pool.owner == bucket)
        if mine.size and rng.random() < 0.5:
            f[:, bucket] = pool.share[:, rng.choice(mine)]
    return f


def _disturbed(instance: Instance, mixture: Mixture, plan: RepairedPlan, rng: np.random.Generator) -> Array:
    off = replace(instance, oldwt=instance.oldwt * np.exp(0.02 * rng.standard_normal(instance.oldwt.shape)))
    f = plan.u[:, :-1]
    try:
        return bounded_mixture(off, z=simulate(instance, f, plan.u[:, -1]).z, start=mixture, plan=f).f
    except NotConverged:
        return f


def _scaled(instance: Instance) -> tuple[Instance, Array]:
    """Scale the instance so that a mean bucket has 2 pages, a mean page takes 1 s, and the largest weight is 1.

    Return the scaled instance and its three factors, for pages, seconds and weights.
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


def _solution(instance: Instance, scaled: Instance, held: _Incumbent, factors: Array) -> Solution:
    """Return the plan in the units of the instance."""
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
