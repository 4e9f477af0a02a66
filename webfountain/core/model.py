"""The optimisation model of one crawl cycle: cost and used capacity of a plan, with exact derivatives.

The variables are fractions of buckets: this turns equations (2)-(4) into a forward recursion, and (5) and (6) into the
bounds [0, 1]. The only other constraints are the inequalities (1). Every time-and-bucket array has shape (T, B): row
t-1 is period t.

--------  ------  -------------------------------------------------------------------------------
symbol    unit    meaning
--------  ------  -------------------------------------------------------------------------------
b[t,i]    pages   pages in bucket i at the end of period t (row 0: the start)
y[t,i]    pages   obsolete pages in bucket i at the end of period t
x[t,i]    pages   decision: pages of bucket i recrawled in period t; f = x / b[t-1]
z[t]      pages   decision: never-crawled pages crawled in period t; g = z / n[t-1]
n[t]      pages   known never-crawled pages at the end of period t
a[t,i]    1       fraction of the pages of bucket i that change during period t
p[i]      1       share of newly crawled pages that fall into bucket i
c, d      s       time to crawl an old page (T, B), a never-crawled page (T,)
C[t]      s       crawling time available in period t
o, w      1       new pages found by crawling an old page (T, B), a never-crawled page (T,)
nconst    pages   new pages that arrive from outside in each period (T,)
oldwt     1       weight of y (T, B)
newwt     1       weight of n (T,)
--------  ------  -------------------------------------------------------------------------------

Source: Edwards, McCurley, Tomlin 2001, section 3, equations (1)-(6); the fractions are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

__all__ = [
    "Instance",
    "Trajectory",
    "capacity_jacobian",
    "fractions",
    "gradient",
    "make_instance",
    "obsolete_oldest_first",
    "simulate",
    "simulate_plan",
    "weights_of",
]

_COHORTS: Final = 16
_BEFORE: Final = {1: 1.0, 2: 0.0, 3: 0.008}
"""For each strategy, the weight of every period before the last; the last period has weight 1. The weight of strategy 3
is calibrated to Table 3 of the paper.
"""


@dataclass(frozen=True, slots=True)
class Instance:
    """Constants of the model, built and checked by `make_instance`.

    Shapes: ``a c o oldwt`` (T, B); ``d w C nconst newwt`` (T,); ``b0 y0 p`` (B,); ``n0`` a number.
    """

    a: Array
    c: Array
    d: Array
    C: Array
    o: Array
    w: Array
    nconst: Array
    p: Array
    oldwt: Array
    newwt: Array
    b0: Array
    y0: Array
    n0: float

    @property
    def T(self) -> int:
        """Number of time periods of the cycle."""
        return int(self.C.size)

    @property
    def B(self) -> int:
        """Number of buckets."""
        return int(self.b0.size)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Development of the collection under a plan: ``b y`` (T+1, B), ``n`` (T+1,), ``x`` (T, B), ``z used`` (T,).

    Row 0 of b, y and n is the start of the cycle. ``used`` is crawling time in seconds.
    """

    b: Array
    y: Array
    n: Array
    x: Array
    z: Array
    used: Array
    objective: float


def weights_of(strategy: int, periods: int) -> Array:
    """Return the (T,) weights of the periods in the objective (section 4.1). With strategy 1, all periods count
    equally; with 2, only the last period counts; with 3, the last period counts most.

    Raises ValueError for an unknown strategy.
    """
    if strategy not in _BEFORE:
        raise ValueError(f"strategy {strategy} is not one of {tuple(_BEFORE)}")
    return np.append(np.full(periods - 1, _BEFORE[strategy]), 1.0)


def make_instance(
    *,
    a: npt.ArrayLike,
    C: npt.ArrayLike,
    b0: npt.ArrayLike,
    oldwt: npt.ArrayLike = 1.0,
    newwt: npt.ArrayLike = 1.0,
    c: npt.ArrayLike = 1.0,
    d: npt.ArrayLike = 1.0,
    o: npt.ArrayLike = 0.0,
    w: npt.ArrayLike = 0.0,
    nconst: npt.ArrayLike = 0.0,
    p: npt.ArrayLike | None = None,
    y0: npt.ArrayLike = 0.0,
    n0: float = 0.0,
    periods: int | None = None,
) -> Instance:
    """Build an `Instance` from numbers, rows and tables that broadcast to its shapes.

    Parameters: ``b0`` (B,) pages; ``C`` (T,) s, or one number with ``periods``; ``a c o oldwt`` (T, B), (B,), (T, 1) or
    a number; ``p`` (B,), scaled to sum 1, proportional to b0 if absent.

    Raises ValueError, which names the symbol, if a value is not finite, out of range, or of a wrong shape.
    """
    b = _array("b0", b0, np.atleast_1d(np.asarray(b0)).shape)
    T = int(np.size(C)) if periods is None else periods
    TB, row = (T, b.size), (T,)
    share = _array("p", b0 if p is None else p, b.shape)
    total = share.sum()
    made = Instance(
        a=_array("a", a, TB, top=1.0),
        c=_array("c", c, TB),
        d=_array("d", d, row),
        C=_array("C", C, row),
        o=_array("o", o, TB),
        w=_array("w", w, row),
        nconst=_array("nconst", nconst, row),
        p=share / total if total > 0 else np.full(b.size, 1.0 / b.size),
        oldwt=_array("oldwt", oldwt, TB),
        newwt=_array("newwt", newwt, row),
        b0=b,
        y0=_array("y0", y0, b.shape),
        n0=float(_array("n0", n0, ())),
    )
    if np.any(made.y0 > b * (1 + 1e-12)):
        raise ValueError("y0: a bucket has more obsolete pages than pages")
    return made


def simulate(instance: Instance, f: Array, g: Array) -> Trajectory:
    """Compute the trajectory of the collection for the fractions ``f`` (T, B) and ``g`` (T,).

    Source: equations (2)-(4), and the objective above (1).
    """
    k, T = instance, instance.T
    b, y, n = np.empty((T + 1, k.B)), np.empty((T + 1, k.B)), np.empty(T + 1)
    z = np.empty(T)
    b[0], y[0], n[0] = k.b0, k.y0, k.n0
    kept, stay, found = 1.0 - f, 1.0 - k.a, k.o * f
    for t in range(T):
        z[t] = g[t] * n[t]
        y[t + 1] = kept[t] * (stay[t] * y[t] + k.a[t] * b[t])
        n[t + 1] = n[t] + found[t] @ b[t] + (k.w[t] - 1.0) * z[t] + k.nconst[t]
        b[t + 1] = b[t] + k.p * z[t]
    x = f * b[:-1]
    used = np.einsum("ti,ti->t", k.c, x) + k.d * z
    objective = float(np.einsum("ti,ti->", k.oldwt, y[1:]) + k.newwt @ n[1:])
    return Trajectory(b=b, y=y, n=n, x=x, z=z, used=used, objective=objective)


def fractions(instance: Instance, x: Array, z: Array) -> tuple[Array, Array]:
    """Return the fractions f (T, B) and g (T,) of a plan that is given in pages. The fraction of an empty bucket
    is 0.
    """
    k = instance
    b = k.b0 + np.concatenate([[0.0], np.cumsum(z)[:-1]])[:, None] * k.p
    gain = np.einsum("ti,ti->t", k.o, x) + (k.w - 1.0) * z + k.nconst
    n = k.n0 + np.concatenate([[0.0], np.cumsum(gain)[:-1]])
    return _share(x, b), _share(z, n)


def simulate_plan(instance: Instance, x: Array, z: Array) -> Trajectory:
    """Compute the trajectory for a plan in pages, ``x`` (T, B) and ``z`` (T,).

    A plan that crawls more pages than exist is cut to the existing pages, as (5) and (6) require.
    """
    f, g = fractions(instance, x, z)
    return simulate(instance, np.clip(f, 0.0, 1.0), np.clip(g, 0.0, 1.0))


def gradient(
    instance: Instance, f: Array, g: Array, path: Trajectory, *, prices: Array | None = None
) -> tuple[Array, Array]:
    """Return dJ/df (T, B) and dJ/dg (T,). J is the objective plus ``prices`` (T,) times the used capacity, and ``path``
    is ``simulate(instance, f, g)``."""
    k, T = instance, instance.T
    price = np.zeros(T) if prices is None else prices
    cost = price[:, None] * k.c
    stay, age = (1.0 - f) * (1.0 - k.a), (1.0 - f) * k.a
    df, dg = np.empty((T, k.B)), np.empty(T)
    by, bb, bn = np.zeros(k.B), np.zeros(k.B), 0.0
    for t in range(T - 1, -1, -1):
        by, bn = by + k.oldwt[t], bn + k.newwt[t]
        change = cost[t] + bn * k.o[t]
        due = path.y[t] + k.a[t] * (path.b[t] - path.y[t])
        df[t] = change * path.b[t] - by * due
        page = bn * (k.w[t] - 1.0) + float(bb @ k.p) + price[t] * k.d[t]
        dg[t] = page * path.n[t]
        bn += g[t] * page
        bb = bb + by * age[t] + change * f[t]
        by = by * stay[t]
    return df, dg


def capacity_jacobian(instance: Instance, f: Array, g: Array, path: Trajectory) -> tuple[Array, Array]:
    """Return two (T, T) tables, K and M, from which the derivatives of the used capacity follow.

    ``K[s, t]`` is the change of used[s] per additional never-crawled page at the end of period t. ``M[s, t]`` is the
    change of used[s] per additional crawled page in period t, distributed over the buckets by p. ``K[s, t]`` and ``M[s,
    t]`` are 0 for s <= t.

        d used[s] / d f[t,i] = b[t-1,i] (c[t,i] [s = t] + o[t,i] K[s,t])
        d used[s] / d g[t]   = n[t-1]   (d[t] [s = t] + (w[t] - 1) K[s,t] + M[s,t])
    """
    k, T = instance, instance.T
    # einsum is used for tables instead of @, here and in simulate: BLAS threads made the whole solve ten times slower
    spread_c, spread_o = np.einsum("ti,ti,i->t", k.c, f, k.p), np.einsum("ti,ti,i->t", k.o, f, k.p)
    n, m = (
        np.zeros((2, T)),
        np.zeros((2, T)),
    )  # row 0: effect of one more never-crawled page; row 1: effect of one more page in b
    table = np.zeros((2, T, T))
    for s in range(T):
        table[:, s] = k.d[s] * g[s] * n + spread_c[s] * m
        n, m = n * (1.0 + (k.w[s] - 1.0) * g[s]) + spread_o[s] * m, m + g[s] * n
        n[0, s], m[1, s] = 1.0, 1.0
    return table[0], table[1]


def _array(letter: str, value: npt.ArrayLike, shape: tuple[int, ...], *, top: float = np.inf) -> Array:
    """Return ``value`` as a new float64 array of ``shape``. Raise ValueError if a value is not in [0, top]."""
    try:
        made = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), shape))
    except ValueError as error:
        raise ValueError(f"{letter}: shape {np.shape(value)} does not fit {shape}") from error
    if made.size and not (np.isfinite(made).all() and made.min() >= 0.0 and made.max() <= top):
        raise ValueError(f"{letter}: values must be finite and between 0 and {top}")
    return made


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


def obsolete_oldest_first(instance: Instance, x: Array, z: Array, *, mean_age: Array) -> Array:
    """Return the (T,) numbers of obsolete crawled pages at the end of each period when each bucket is crawled oldest
    page first.

    Equation (2) assumes that the crawled pages of a bucket are drawn at random. Crawling the oldest copies first leaves
    fewer obsolete pages, because no page waits long (Figure 2).

    Parameters
    ----------
    x : (T, B) pages recrawled
    z : (T,) never-crawled pages crawled
    mean_age : (B,) mean number of periods since the last crawl; ages are assumed to be evenly spread from 0 to twice
        the mean
    """
    ages = (np.arange(_COHORTS) + 0.5)[::-1] * (2.0 / _COHORTS)
    # (B, cohorts) pages of each cohort and their obsolete share, oldest cohort first; each period appends a cohort
    pages = np.concatenate([np.repeat(instance.b0[:, None] / _COHORTS, _COHORTS, axis=1), np.zeros_like(x).T], axis=1)
    obsolete = np.zeros_like(pages)
    obsolete[:, :_COHORTS] = 1.0 - (1.0 - instance.a[0])[:, None] ** (ages * mean_age[:, None])
    total = np.zeros(instance.T)
    for t in range(instance.T):
        older = np.cumsum(pages, axis=1) - pages
        pages -= np.clip(x[t][:, None] - older, 0.0, pages)
        obsolete = 1.0 - (1.0 - obsolete) * (1.0 - instance.a[t])[:, None]
        pages[:, _COHORTS + t] = x[t] + instance.p * z[t]
        obsolete[:, _COHORTS + t] = 0.0
        total[t] = (pages * obsolete).sum()
    return total
