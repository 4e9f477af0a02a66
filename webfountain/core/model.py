"""The optimisation model of one crawler cycle: what a plan costs and what it uses, with exact derivatives.

Place in the walk of a crawl-history record (DESIGN 4): census -> **model** -> optimizer -> quotas. The
decisions are fractions, so that equations (2)-(4) are a forward recursion, (5) and (6) are the box [0, 1], and
only the T capacity rows (1) remain. Every time-and-bucket array has shape (T, B): row t-1 is period t.

========  ======  ===============================================================================
symbol    unit    meaning
========  ======  ===============================================================================
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
========  ======  ===============================================================================

It solves nothing (`optimizer` does) and reads nothing (`make_instance` builds an `Instance` from a table).

Source: Edwards, McCurley, Tomlin 2001, section 3, equations (1)-(6); the fractions are ours.

The strategies: what obsolete pages weigh in each period of a cycle, by the names of instance files and by number.
Place in the walk (DESIGN 4): the objective of the instances that a census gives (`buckets`) and `make_instance` builds.

Source: Edwards 2001, section 4.1.

Instances by construction: from the table of an instance file to the arrays of the model. The table is what `tomllib`
makes of a file of the form of EMT-1: mean lifetimes by quantile of the buckets, costs, discovery rates, strategies by
name. Numbers that the form gives once may also be lists: one number per bucket for ``costs.old`` and
``discovery.old_finds_new``, one per period for the others.

Place in the walk (DESIGN 4): beside it; a live crawl measures its instance (`buckets`). Reading the file is
`report.findings`.

Source: Edwards 2001, section 4 (strategies 1-3, versions v1-v3, Table 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "NAMED",
    "STRATEGIES",
    "VERSIONS",
    "Array",
    "Instance",
    "Trajectory",
    "build_instance",
    "capacity_jacobian",
    "fractions",
    "gradient",
    "make_instance",
    "simulate",
    "simulate_plan",
    "strategy_names",
    "weights_of",
]

_LOW = 0.008  # strategy 3's weight of the periods before the last, as calibrated to the paper's Table 3


def _equal(periods: int, low: float) -> Array:
    """Strategy 1: 1 in every period. The paper says "summing to 1", but its objective is T times larger."""
    return np.ones(periods)


def _last(periods: int, low: float) -> Array:
    """Strategy 2: only the last period counts."""
    return _last_heavy(periods, 0.0)


def _last_heavy(periods: int, low: float) -> Array:
    """Strategy 3: `low` before the last period; with `low` 0 it is strategy 2."""
    return np.append(np.full(periods - 1, low), 1.0)


NAMED: dict[str, Callable[[int, float], Array]] = {"equal": _equal, "last": _last, "last-heavy": _last_heavy}
"""(T,) weights from the number of periods and the weight of those before the last."""

_NUMBERED = {1: "equal", 2: "last", 3: "last-heavy"}

STRATEGIES = tuple(_NUMBERED)
"""1: equal weights in all periods; 2: the last period only; 3: the last, and very little before."""


def weights_of(strategy: int, periods: int) -> Array:
    """(T,) weights of the periods in the objective.

    Raises ValueError when `strategy` is none of `STRATEGIES`.
    """
    if strategy not in _NUMBERED:
        raise ValueError(f"strategy {strategy}; must be one of {STRATEGIES}")
    return NAMED[_NUMBERED[strategy]](periods, _LOW)


Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Instance:
    """All constants of the model. Build it with `make_instance`, which broadcasts and checks.

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
    """What a plan makes of the collection: ``b y`` (T+1, B), ``n`` (T+1,), ``x`` (T, B), ``z used`` (T,).

    Row 0 of b, y and n is the start of the cycle. ``used`` is crawling time in seconds.
    """

    b: Array
    y: Array
    n: Array
    x: Array
    z: Array
    used: Array
    objective: float


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
    """An `Instance` from numbers, rows and tables; anything that broadcasts to the shapes above is taken.

    Parameters: ``b0`` (B,) pages; ``C`` (T,) s, or one number with ``periods``; ``a c o oldwt`` (T, B), (B,),
    (T, 1) or a number; ``p`` (B,), scaled to sum 1, proportional to b0 when absent.

    Raises ValueError naming the letter when a value is not finite, negative, above its bound or ill-shaped.
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
        raise ValueError("y0: obsolete pages exceed the pages of their bucket")
    return made


def simulate(instance: Instance, f: Array, g: Array) -> Trajectory:
    """Follow the fractions ``f`` (T, B) and ``g`` (T,) through the cycle.

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
    """The fractions f (T, B) and g (T,) of a plan in pages; where no page is, the fraction is 0."""
    k = instance
    b = k.b0 + np.concatenate([[0.0], np.cumsum(z)[:-1]])[:, None] * k.p
    gain = np.einsum("ti,ti->t", k.o, x) + (k.w - 1.0) * z + k.nconst
    n = k.n0 + np.concatenate([[0.0], np.cumsum(gain)[:-1]])
    return _share(x, b), _share(z, n)


def simulate_plan(instance: Instance, x: Array, z: Array) -> Trajectory:
    """Follow a plan in pages, ``x`` (T, B) and ``z`` (T,): what `plan solve --out` holds.

    A decision above what is there is cut to it by (5) and (6), so what follows is always a possible history.
    """
    f, g = fractions(instance, x, z)
    return simulate(instance, np.clip(f, 0.0, 1.0), np.clip(g, 0.0, 1.0))


def gradient(
    instance: Instance, f: Array, g: Array, path: Trajectory, *, prices: Array | None = None
) -> tuple[Array, Array]:
    """Derivative of the objective plus ``prices`` (T,) times the used capacity, by one backward sweep.

    Returns dJ/df (T, B) and dJ/dg (T,). ``path`` is ``simulate(instance, f, g)``.
    """
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
    """What the fractions do to the used capacity: two (T, T) tables of scalars, and all else is direct.

    Returns K and M: ``K[s, t]`` is the change of used[s] by one more never-crawled page at the end of period t,
    ``M[s, t]`` by one more page spread over the buckets by p. Both vanish for s <= t. Then

        d used[s] / d f[t,i] = b[t-1,i] (c[t,i] [s = t] + o[t,i] K[s,t])
        d used[s] / d g[t]   = n[t-1]   (d[t] [s = t] + (w[t] - 1) K[s,t] + M[s,t])

    because every change of b is along p: two scalars carry a perturbation through the cycle.
    """
    k, T = instance, instance.T
    # einsum and not @ on tables, here and in simulate: threads of a BLAS made the whole solve ten times slower
    spread_c, spread_o = np.einsum("ti,ti,i->t", k.c, f, k.p), np.einsum("ti,ti,i->t", k.o, f, k.p)
    n, m = np.zeros((2, T)), np.zeros((2, T))  # row 0 began as a never-crawled page, row 1 as a page in b
    table = np.zeros((2, T, T))
    for s in range(T):
        table[:, s] = k.d[s] * g[s] * n + spread_c[s] * m
        n, m = n * (1.0 + (k.w[s] - 1.0) * g[s]) + spread_o[s] * m, m + g[s] * n
        n[0, s], m[1, s] = 1.0, 1.0
    return table[0], table[1]


def _array(letter: str, value: npt.ArrayLike, shape: tuple[int, ...], *, top: float = np.inf) -> Array:
    """``value`` as a fresh float64 array of ``shape``, all in [0, top]."""
    try:
        made = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), shape))
    except ValueError as error:
        raise ValueError(f"{letter}: shape {np.shape(value)} does not fit {shape}") from error
    if made.size and not (np.isfinite(made).all() and made.min() >= 0.0 and made.max() <= top):
        raise ValueError(f"{letter}: values must be finite and within 0 and {top}")
    return made


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


VERSIONS = ("v1", "v2", "v3")

_KEYS = {
    "": {"name", "buckets", "periods", "period_days", "pages", "change", "costs", "discovery", "strategies"},
    "pages": {"initial", "initial_obsolete", "initial_new"},
    "change": {"quantile", "mean_lifetime_days"},
    "costs": {"old", "new", "capacity"},
    "discovery": {"old_finds_new", "new_finds_new", "exogenous"},
}
_NOTES = {"fingerprints", "best_known"}  # tables that describe an instance and build nothing
_STRATEGY = {"weights", "low"}
_MOST = {"buckets": 100_000, "periods": 1_000}

Table = Mapping[str, object]


def strategy_names(table: Table) -> list[str]:
    """The names under ``[strategies]``, in the order of the file."""
    strategies = table.get("strategies")
    return list(strategies) if isinstance(strategies, Mapping) else []


def build_instance(
    table: Table,
    *,
    strategy: str,
    version: str = "v1",
    periods: int | None = None,
    buckets: int | None = None,
) -> Instance:
    """The model of a table under a strategy and a version; ``periods`` and ``buckets`` replace the table's.

    Version v1 spreads the initial pages evenly, v2 by 3, 1, 3 over the fastest quarter, the middle and the
    slowest quarter of the buckets, v3 halves the change rates of v1.

    Raises InputError with key and value; the caller puts the file's name before it.
    """
    place = _Place(table)
    place.check_keys()
    if version not in VERSIONS:
        raise InputError(f"version: {version!r} is not one of {', '.join(VERSIONS)}")
    T = _count("periods", place.get("", "periods") if periods is None else periods)
    B = _count("buckets", place.get("", "buckets") if buckets is None else buckets)
    weights = _weights(table, strategy, T)
    pages, share = place.number("pages", "initial"), _shares(B, version)
    try:
        return make_instance(
            a=_change_fractions(place, B, version),
            b0=pages * share,
            y0=_at_most("pages.initial_obsolete", place.number("pages", "initial_obsolete"), pages) * share,
            n0=place.number("pages", "initial_new"),
            c=place.numbers("costs", "old", B),
            d=place.numbers("costs", "new", T),
            C=place.numbers("costs", "capacity", T),
            o=place.numbers("discovery", "old_finds_new", B),
            w=place.numbers("discovery", "new_finds_new", T),
            nconst=place.numbers("discovery", "exogenous", T),
            oldwt=weights[:, None],
            newwt=weights,
            periods=T,
        )
    except ValueError as error:
        raise InputError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Place:
    """A table with errors that name key and value."""

    table: Table

    def check_keys(self) -> None:
        """Refuse a key that nothing reads: it would be a wish silently ignored."""
        for section, allowed in _KEYS.items():
            known = allowed | (_NOTES if not section else set())
            for key in self._section(section):
                if key not in known:
                    raise InputError(f"{_path(section, key)}: unknown key; known are {', '.join(sorted(known))}")

    def get(self, section: str, key: str) -> object:
        """A value that must be there."""
        found = self._section(section)
        if key not in found:
            raise InputError(f"{_path(section, key)}: is missing")
        return found[key]

    def number(self, section: str, key: str) -> float:
        """A finite number of at least 0."""
        return _number(_path(section, key), self.get(section, key))

    def numbers(self, section: str, key: str, count: int) -> Array:
        """A number, or a list of ``count`` numbers, as an array of ``count``."""
        value, path = self.get(section, key), _path(section, key)
        if not isinstance(value, list):
            return np.full(count, _number(path, value))
        return _row(path, value, count)

    def _section(self, section: str) -> Table:
        found = self.table.get(section) if section else self.table
        if not isinstance(found, Mapping):
            raise InputError(f"{section}: must be a table, got {found!r}")
        return found


def _path(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _number(path: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0.0 <= float(value) < np.inf:
        raise InputError(f"{path}: must be a number of at least 0, got {value!r}")
    return float(value)


def _count(path: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST[path]:
        raise InputError(f"{path}: must be a whole number from 1 to {_MOST[path]}, got {value!r}")
    return value


def _row(path: str, value: Sequence[object], count: int) -> Array:
    if len(value) != count:
        raise InputError(f"{path}: must hold {count} numbers, got {len(value)}")
    return np.array([_number(f"{path}[{k}]", each) for k, each in enumerate(value)])


def _at_most(path: str, value: float, top: float) -> float:
    if value > top:
        raise InputError(f"{path}: must be at most the {top} initial pages, got {value!r}")
    return value


def _shares(B: int, version: str) -> Array:
    """Share of the initial pages in each bucket (B,)."""
    share: Array = np.ones(B)
    if version == "v2":
        quarter = round(B / 4)
        share[:quarter] = share[B - quarter :] = 3.0
    share /= share.sum()
    return share


def _change_fractions(place: _Place, B: int, version: str) -> Array:
    """a (B,) from the mean lifetimes: linear between the given quantiles, at the middle of each bucket."""
    given = [place.get("change", key) for key in ("quantile", "mean_lifetime_days")]
    if not all(isinstance(each, list) and len(each) >= 2 for each in given):
        raise InputError(f"change.quantile: and mean_lifetime_days must be lists of 2 or more, got {given!r}")
    quantile = _row("change.quantile", _listed(given[0]), len(_listed(given[0])))
    lifetime = _row("change.mean_lifetime_days", _listed(given[1]), quantile.size)
    if np.any(np.diff(quantile) <= 0.0) or quantile[0] < 0.0 or quantile[-1] > 1.0:
        raise InputError(f"change.quantile: must rise within 0 and 1, got {given[0]!r}")
    if lifetime.min() <= 0.0:
        raise InputError(f"change.mean_lifetime_days: must be above 0, got {given[1]!r}")
    middle = (np.arange(B) + 0.5) / B
    days = np.interp(middle, quantile, lifetime) * (2.0 if version == "v3" else 1.0)
    a: Array = -np.expm1(-place.number("", "period_days") / days)
    return a


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _weights(table: Table, strategy: str, T: int) -> Array:
    """oldwt = newwt (T,) of a strategy of the table."""
    strategies = table.get("strategies")
    if not isinstance(strategies, Mapping) or strategy not in strategies:
        raise InputError(f"strategies.{strategy}: is not in {', '.join(strategy_names(table)) or 'the file'}")
    given, path = strategies[strategy], f"strategies.{strategy}"
    if not isinstance(given, Mapping) or not set(given) <= _STRATEGY:
        raise InputError(f"{path}: must be a table of weights and low, got {given!r}")
    weights = given.get("weights")
    if isinstance(weights, list):
        return _row(f"{path}.weights", weights, T)
    if not isinstance(weights, str) or weights not in NAMED:
        raise InputError(f"{path}.weights: must be {', '.join(NAMED)} or a list of {T} numbers, got {weights!r}")
    return NAMED[weights](T, _number(f"{path}.low", given.get("low", 0.0)))
