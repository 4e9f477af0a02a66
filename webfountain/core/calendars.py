"""Solver of the optimisation model by column generation, with a lower bound on the objective.

A *calendar* of a bucket is the set of periods in which the whole bucket is recrawled. For fixed bucket sizes b[t] (the
growth path), the best schedule of a bucket is a calendar, because the Lagrangian is linear. Dynamic programming finds
the best calendar of a bucket. A linear program (HiGHS) finds the best mixture of calendars for each bucket. The dual
prices of the linear program lead to better calendars, until none improves the mixture; then the growth path is updated.

The mixture is only a starting point for SLSQP, because equation (2) assumes that the crawled pages of a bucket are
drawn at random.

Source: Edwards 2001, section 3, equations (1)-(6); the decomposition is ours (Dantzig-Wolfe).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from webfountain.core.model import Instance, gradient, simulate_plan
from webfountain.errors import NotConverged

if TYPE_CHECKING:
    from webfountain.core.arrays import Array, Ints

__all__ = [
    "Mixture",
    "Pool",
    "best_calendars",
    "bounded_mixture",
    "growth_path",
    "mix",
    "schedule_costs",
    "waiting_costs",
]


_GROUPS = 40  # number of buckets of the coarse problem that gives the first prices
_ROUNDS = 16
_LONG_ROUNDS = 2  # additional rounds per period, because long cycles have more calendars
_RUNGS = 12
_CLOSED = 1e-4  # column generation stops at this relative distance between the program's value and its bound
_NEGLIGIBLE = 1e-9
_PROHIBITIVE = 1e12


@dataclass(frozen=True, slots=True)
class Pool:
    """Schedules that the linear program may mix.

    ``owner`` (m,) is the bucket of each schedule. ``share`` (T, m) is the fraction of its bucket that each schedule
    crawls per period.
    """

    owner: Ints
    share: Array

    def plus(self, owner: Ints, share: Array) -> Pool:
        """Return the pool of schedules, extended by the given ones."""
        return Pool(np.concatenate([self.owner, owner]), np.concatenate([self.share, share], axis=1))

    def only(self, chosen: npt.NDArray[np.bool_]) -> Pool:
        return Pool(self.owner[chosen], self.share[:, chosen])


@dataclass(frozen=True, slots=True)
class Mixture:
    """Solution of the linear program: ``f`` (T, B), ``z`` (T,) pages, the prices and the schedules in use.

    ``prices`` (T,) are the prices of one second of crawling time in each period. ``arrivals`` (T,) are the prices of
    one page that becomes known in a period. ``bound`` is a lower bound on the objective for a fixed growth path.
    """

    f: Array
    z: Array
    prices: Array
    arrivals: Array
    bound: float
    pool: Pool
    weight: Array


@dataclass(frozen=True, slots=True)
class _Master:
    instance: Instance
    b: Array
    z_cost: Array
    z: Array | None


@dataclass(frozen=True, slots=True)
class _Solution:
    value: float
    weight: Array
    z: Array
    prices: Array
    arrivals: Array
    convexity: Array


def growth_path(instance: Instance, z: Array) -> Array:
    """Return the growth path b[t] (T+1, B) of equation (4) when ``z`` (T,) never-crawled pages are crawled."""
    return instance.b0 + np.concatenate([[0.0], np.cumsum(z)])[:, None] * instance.p


def schedule_costs(instance: Instance, b: Array, pool: Pool) -> Array:
    """Return (m,) costs: the weighted obsolete pages of each schedule's bucket, by equation (2)."""
    own = pool.owner
    y, cost = instance.y0[own], np.zeros(own.size)
    for t in range(instance.T):
        a = instance.a[t, own]
        y = (1.0 - pool.share[t]) * (y + a * (b[t, own] - y))
        cost += instance.oldwt[t, own] * y
    return cost


def best_calendars(instance: Instance, b: Array, waits: Array, unit: Array) -> tuple[Array, Array]:
    """Find the cheapest calendar of every bucket when crawling a page costs ``unit`` (T, B).

    Returns the costs (B,) and the calendars (T, B) of zeros and ones.
    """
    T, B = instance.T, instance.B
    price = unit * b[:-1]
    value, following = np.zeros((T + 2, B)), np.zeros((T + 1, B), dtype=np.int64)
    column = np.arange(B)
    for s in range(T, -1, -1):
        choice = waits[s, s : T + 1].copy()
        choice[: T - s] += price[s:] + value[s + 1 : T + 1]
        best = choice.argmin(axis=0)
        following[s] = best + s + 1
        value[s] = choice[best, column]
    return value[0], _followed(following)


def waiting_costs(instance: Instance, b: Array) -> Array:
    """Return (T+1, T+1, B) costs: the weighted obsolete pages of each bucket between its crawls in periods s and t."""
    T, B = instance.T, instance.B
    y, total = np.zeros((T + 1, B)), np.zeros((T + 1, T + 1, B))
    y[0] = instance.y0
    for t in range(1, T + 1):
        a = instance.a[t - 1]
        y[:t] += a * (b[t - 1] - y[:t])
        total[:t, t] = total[:t, t - 1] + instance.oldwt[t - 1] * y[:t]
    return total


def mix(instance: Instance, b: Array, pool: Pool, weight: Array) -> Array:
    """Return the fractions f (T, B) of a weighted mixture of schedules."""
    f = np.zeros((instance.B, instance.T))
    np.add.at(f, pool.owner, (pool.share * weight).T)
    f[f < 1e-7] = 0.0
    f[f > 1.0 - 1e-7] = 1.0
    f[b[-1] <= 0.0] = 0.0
    return np.ascontiguousarray(f.T)


def bounded_mixture(
    instance: Instance, *, z: Array | None = None, start: Mixture | None = None, plan: Array | None = None
) -> Mixture:
    """Mix calendars until no calendar improves the mixture.

    Without ``z`` (T,), the growth path is part of the solution. ``start`` gives the initial prices and schedules.
    ``plan`` (T, B) gives one more schedule for each bucket.

    Raises NotConverged if HiGHS finds no solution of the linear program.
    """
    if z is not None:
        first = _first_pool(instance, start, plan)
        return _generate(_Master(instance, growth_path(instance, z), np.zeros(instance.T), z), first)
    if instance.B > 2 * _GROUPS:
        start = _from_groups(instance)
        return _outer(instance, start, rounds=2)
    return _outer(instance, start, rounds=4)


def _outer(instance: Instance, start: Mixture | None, *, rounds: int) -> Mixture:
    z = instance.nconst if start is None else start.z
    z_cost = np.zeros(instance.T) if start is None else _growth_cost(instance, start)
    for _ in range(rounds):
        pool = _first_pool(instance, start, None)
        start = _generate(_Master(instance, growth_path(instance, z), z_cost, None), pool)
        settled = np.abs(start.z - z).max() <= 1e-3 * (z.max() + _NEGLIGIBLE)
        z, z_cost = start.z, _growth_cost(instance, start)
        if settled:
            break
    assert start is not None
    return start


def _first_pool(instance: Instance, start: Mixture | None, plan: Array | None) -> Pool:
    T, B = instance.T, instance.B
    pool = Pool(np.arange(B), np.zeros((T, B)))
    pool = _ladder(instance, pool) if start is None else pool.plus(start.pool.owner, start.pool.share)
    return pool if plan is None else pool.plus(np.arange(B), plan)


def _ladder(instance: Instance, pool: Pool) -> Pool:
    """Return the pool of schedules, extended by the best calendars at several constant prices."""
    b = growth_path(instance, np.zeros(instance.T))
    waits = waiting_costs(instance, b)
    for price in np.geomspace(1e-3, instance.T, _RUNGS):
        pool = pool.plus(np.arange(instance.B), best_calendars(instance, b, waits, price * instance.c)[1])
    return pool


def _generate(master: _Master, pool: Pool) -> Mixture:
    """Solve the linear program and add the best calendars at its prices, until the value of the program meets the
    bound.
    """
    k, b = master.instance, master.b
    waits = waiting_costs(k, b)
    cost = schedule_costs(k, b, pool)
    shut = (k.C[:, None] <= 0.0) & (k.c > 0.0)  # any price is correct there, but HiGHS returns a low price
    bound, last = -np.inf, _ROUNDS + _LONG_ROUNDS * k.T - 1
    for turn in range(last + 1):
        solved = _solve(master, pool, cost)
        unit = solved.prices[:, None] * k.c + solved.arrivals[:, None] * k.o
        unit[shut] = _PROHIBITIVE
        value, calendars = best_calendars(k, b, waits, unit)
        reduced = np.minimum(value - solved.convexity, 0.0)
        bound = max(bound, solved.value + float(reduced.sum()))
        if turn == last or solved.value - bound <= _CLOSED * abs(solved.value):
            break
        paying = np.flatnonzero(reduced < -_NEGLIGIBLE)
        more = Pool(paying, calendars[:, paying])
        pool, cost = pool.plus(more.owner, more.share), np.append(cost, schedule_costs(k, b, more))
    in_use = solved.weight > _NEGLIGIBLE
    used, weight = pool.only(in_use), solved.weight[in_use]
    f = mix(k, b, used, weight)
    return Mixture(f, solved.z, solved.prices, solved.arrivals, bound, used, weight)


def _followed(following: Ints) -> Array:
    T, B = following.shape[0] - 1, following.shape[1]
    calendars, column = np.zeros((T, B)), np.arange(B)
    at = following[0]
    while (going := at <= T).any():
        at, column = at[going], column[going]
        calendars[at - 1, column] = 1.0
        at = following[at, column]
    return calendars


def _solve(master: _Master, pool: Pool, cost: Array) -> _Solution:
    """Solve the linear program for three variables: the weights of the schedules, z and n."""
    k, m, T = master.instance, pool.owner.size, master.instance.T
    rows_ub, rows_eq = _rows(master, pool)
    low, high = np.zeros(m + 2 * T), np.full(m + 2 * T, np.inf)
    if master.z is not None:
        low[m : m + T] = high[m : m + T] = master.z
    arrivals = k.nconst + np.append(k.n0, np.zeros(T - 1))
    found = linprog(
        np.concatenate([cost, master.z_cost, k.newwt]),
        A_ub=rows_ub,
        b_ub=np.concatenate([k.C, [k.n0], np.zeros(T - 1)]),
        A_eq=rows_eq,
        b_eq=np.concatenate([np.ones(k.B), arrivals]),
        bounds=np.stack([low, high], axis=1),
        method="highs-ds",
        options={"presolve": False},
    )
    if found.status != 0:
        raise NotConverged(f"calendars: HiGHS ended with status {found.status}: {found.message}")
    duals = found.eqlin.marginals
    return _Solution(
        value=float(found.fun),
        weight=found.x[:m],
        z=found.x[m : m + T],
        prices=np.maximum(-found.ineqlin.marginals[:T], 0.0),
        arrivals=duals[k.B :],
        convexity=duals[: k.B],
    )


def _rows(master: _Master, pool: Pool) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the inequality rows and the equality rows.

    The inequalities are the capacity (1) and z[t] <= n[t-1] (6). The equalities say that the weights of a bucket's
    schedules sum to 1, and that the balance (3) holds.
    """
    k, m, T = master.instance, pool.owner.size, master.instance.T
    pages = pool.share * master.b[:-1][:, pool.owner]
    eye = sparse.eye_array(T, format="csr")
    before = sparse.eye_array(T, k=-1, format="csr")
    one_each = sparse.csr_array((np.ones(m), (pool.owner, np.arange(m))), shape=(k.B, m))
    capacity = [sparse.csr_array(pages * k.c[:, pool.owner]), sparse.diags_array(k.d), None]
    balance = [sparse.csr_array(-pages * k.o[:, pool.owner]), sparse.diags_array(1.0 - k.w), eye - before]
    return (
        sparse.block_array([capacity, [None, eye, -before]], format="csr"),
        sparse.block_array([[one_each, None, None], balance], format="csr"),
    )


def _growth_cost(instance: Instance, mixture: Mixture) -> Array:
    """Return the (T,) costs that a page causes in all later periods if it enters the buckets in period t."""
    path = simulate_plan(instance, mixture.f * growth_path(instance, mixture.z)[:-1], mixture.z)
    silent = replace(instance, newwt=np.zeros(instance.T), o=np.zeros_like(instance.o), d=np.zeros(instance.T))
    unseen = replace(path, n=np.ones(instance.T + 1))
    return gradient(silent, mixture.f, np.zeros(instance.T), unseen, prices=mixture.prices)[1]


def _from_groups(instance: Instance) -> Mixture:
    """Compute initial schedules and prices from about 40 groups of buckets with similar change rates."""
    order = np.argsort(-instance.a.mean(axis=0), kind="stable")
    group = np.empty(instance.B, dtype=np.int64)
    group[order] = np.arange(instance.B) * _GROUPS // instance.B
    coarse = _outer(_grouped(instance, group), None, rounds=4)
    owner, source = [], []
    for shift in (-1, 0, 1):
        pairs = np.nonzero(group[:, None] + shift == coarse.pool.owner)
        owner.append(pairs[0])
        source.append(pairs[1])
    used = np.concatenate(source)
    pool = Pool(np.concatenate(owner), coarse.pool.share[:, used])
    weight = np.where(group[pool.owner] == coarse.pool.owner[used], coarse.weight[used], 0.0)
    return replace(coarse, f=coarse.f[:, group], pool=pool, weight=weight)


def _grouped(instance: Instance, group: Ints) -> Instance:
    """Return the instance with the buckets of each group merged."""
    k, member = instance, np.zeros((instance.B, _GROUPS))
    member[np.arange(instance.B), group] = 1.0
    pages = member * (k.b0 + _NEGLIGIBLE * (1.0 + k.b0.max()))[:, None]
    mean = pages / pages.sum(axis=0)
    return replace(
        k,
        a=np.minimum(k.a @ mean, 1.0),
        c=k.c @ mean,
        o=k.o @ mean,
        oldwt=k.oldwt @ mean,
        p=k.p @ member,
        b0=k.b0 @ member,
        y0=k.y0 @ member,
    )
