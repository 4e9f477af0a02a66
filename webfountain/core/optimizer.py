"""The optimiser: the best plan of a cycle that it can find, with a bound that says how good it must be.

SLSQP is the engine (`working_set`). Few buckets (at most 16): SLSQP on every fraction from several starts, and
the calendars route; the better is kept. More: a mixture of calendars (`calendars`), then SLSQP on a working set.
``quality="high"`` starts again near the best plan, its split buckets drawn whole or its weights disturbed: where
a page belongs to two calendars, equation (2) makes their mixture dear, and drawing finds plans that split less.
Every plan is repaired to keep the capacity exactly and simulated again, so the objective is the plan's own.

Place in the walk (DESIGN 4): model -> calendars -> **optimizer** -> quotas. It reads no clock and no file, and
for the same instance and seed gives the same plan.

Source: Edwards 2001, section 4, where MINOS took ten minutes; the route is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from webfountain.core.calendars import Mixture, bounded_mixture, growth_path
from webfountain.core.model import (
    Array,
    Instance,
    fractions,
    simulate,
    simulate_plan,
)
from webfountain.core.working_set import Plan, better, closed_fractions, measured, polished, uniform_plan
from webfountain.errors import NotConverged

__all__ = ["Quality", "Solution", "Solver", "solve"]

Solver = Literal["auto", "slsqp", "calendars"]
Quality = Literal["normal", "high"]

_FEW = 16 * 15  # fractions, as of 14 periods and 16 buckets, up to which SLSQP on everything is quick
_RESTARTS = {"normal": 0, "high": 24}
_FEW_RESTARTS = {"normal": 4, "high": 32}
_COLD_STARTS = {"normal": 2, "high": 8}


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan and what is known about it.

    ``x`` (T, B) and ``z`` (T,) are pages, ``f`` and ``g`` the same as fractions. ``slack`` (T,) is unused crawling
    time, ``excess`` its violation (0 but for rounding). ``bound`` holds for every plan with these z, ``gap`` is
    (objective - bound) / objective. ``status`` is "solved", or "fallback" where no solver got further than the
    uniform plan; ``message`` names the route that found it. ``prices`` (T,) is what one more second saves.
    """

    x: Array
    z: Array
    f: Array
    g: Array
    objective: float
    slack: Array
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

    plan: Plan
    mixture: Mixture | None
    bound: float


def _is_small(instance: Instance) -> bool:
    return instance.T * (instance.B + 1) <= _FEW


def _start(instance: Instance) -> Plan:
    f, g = uniform_plan(instance)
    return measured(instance, np.column_stack([f, g]), np.zeros(instance.T), "uniform")


def _cold(instance: Instance, best: Plan, starts: int, rng: np.random.Generator) -> Plan:
    """SLSQP from the uniform plan and from random ones, on everything where that is quick."""
    begin, everything = best, _is_small(instance)
    for turn in range(starts):
        best = better(best, polished(instance, begin, everything=everything, route=f"slsqp {turn}"))
        u = np.where(closed_fractions(instance), 0.0, rng.random(best.u.shape))
        begin = measured(instance, u, best.prices, "random")
    return best


def _by_calendars(instance: Instance, best: Plan) -> tuple[Plan, Mixture | None]:
    try:
        mixture = bounded_mixture(instance)
    except NotConverged:
        return best, None
    path = simulate_plan(instance, mixture.f * growth_path(instance, mixture.z)[:-1], mixture.z)
    g = np.clip(fractions(instance, path.x, path.z)[1], 0.0, 1.0)
    return better(best, _polished_from(instance, mixture.f, g, mixture.prices, "calendars")), mixture


def _polished_from(instance: Instance, f: Array, g: Array, prices: Array, route: str) -> Plan:
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


def _drawn_whole(instance: Instance, mixture: Mixture, plan: Plan, rng: np.random.Generator) -> Array:
    """The mixture's f (T, B), half of its split buckets given to one of their schedules."""
    f, pool = mixture.f.copy(), mixture.pool
    for bucket in np.flatnonzero(((f > 0.0) & (f < 1.0)).any(axis=0)):
        mine = np.flatnonzero(pool.owner == bucket)
        if mine.size and rng.random() < 0.5:
            f[:, bucket] = pool.share[:, rng.choice(mine)]
    return f


def _disturbed(instance: Instance, mixture: Mixture, plan: Plan, rng: np.random.Generator) -> Array:
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
        slack=np.maximum(instance.C - path.used, 0.0),
        excess=float(np.maximum(path.used - instance.C, 0.0).max()),
        bound=bound,
        gap=(path.objective - bound) / path.objective if path.objective > 0.0 else 0.0,
        prices=best.prices * (weight / seconds),
        status="fallback" if held.mixture is None and best.route == "uniform" else "solved",
        message=f"found by {best.route}",
    )
