"""Build the model's arrays from the table of an instance file.

The table comes from a TOML file such as emt1.toml, with mean lifetimes, costs, discovery rates and strategies. In place
of a number, the table may contain a list with one number per period. The lists ``costs.old`` and
``discovery.old_finds_new`` have one entry per bucket.

Source: Edwards 2001, section 4 (strategies 1-3, versions v1-v3, Table 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.model import make_instance
from webfountain.errors import InputError

if TYPE_CHECKING:
    from webfountain.core.arrays import Array
    from webfountain.core.model import Instance

__all__ = ["VERSIONS", "Table", "build_instance", "strategy_names"]

VERSIONS = ("v1", "v2", "v3")

_KEYS = {
    "": {"name", "buckets", "periods", "period_days", "pages", "change", "costs", "discovery", "strategies"},
    "pages": {"initial", "initial_obsolete", "initial_new"},
    "change": {"quantile", "mean_lifetime_days"},
    "costs": {"old", "new", "capacity"},
    "discovery": {"old_finds_new", "new_finds_new", "exogenous"},
}
_NOTES = {"fingerprints", "best_known"}  # tables that describe an instance and do not enter the model
_STRATEGY = {"weights", "low"}
_MOST = {"buckets": 100_000, "periods": 1_000}

Table = Mapping[str, object]


def strategy_names(table: Table) -> list[str]:
    """Return the names under ``[strategies]``, in the order of the file."""
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
    """Build the model that a table describes, for one strategy and one version. ``periods`` and ``buckets`` replace the
    values in the table.

    Version v1 spreads the initial pages evenly over the buckets. Version v2 spreads the initial pages 3:1:3 over the
    fastest quarter, the middle and the slowest quarter of the buckets. Version v3 halves the change rates of v1.

    Raises InputError for an invalid value; the message names the key and the value.
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
    table: Table

    def check_keys(self) -> None:
        """Raise InputError if there is an unknown key."""
        for section, allowed in _KEYS.items():
            known = allowed | (_NOTES if not section else set())
            for key in self._section(section):
                if key not in known:
                    raise InputError(f"{_path(section, key)}: unknown key; allowed are {', '.join(sorted(known))}")

    def get(self, section: str, key: str) -> object:
        found = self._section(section)
        if key not in found:
            raise InputError(f"{_path(section, key)} is missing")
        return found[key]

    def number(self, section: str, key: str) -> float:
        """Return a finite number of at least 0."""
        return _number(_path(section, key), self.get(section, key))

    def numbers(self, section: str, key: str, count: int) -> Array:
        """Return an array of length ``count``, from one number or from a list of ``count`` numbers."""
        value, path = self.get(section, key), _path(section, key)
        if not isinstance(value, list):
            return np.full(count, _number(path, value))
        return _row(path, value, count)

    def _section(self, section: str) -> Table:
        found = self.table.get(section) if section else self.table
        if not isinstance(found, Mapping):
            raise InputError(f"{section} must be a table, got {found!r}")
        return found


def _path(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _number(path: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0.0 <= float(value) < np.inf:
        raise InputError(f"{path} must be a number of at least 0, got {value!r}")
    return float(value)


def _count(path: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST[path]:
        raise InputError(f"{path} must be a whole number from 1 to {_MOST[path]}, got {value!r}")
    return value


def _row(path: str, value: Sequence[object], count: int) -> Array:
    if len(value) != count:
        raise InputError(f"{path} must be a list of {count} numbers, got {len(value)}")
    return np.array([_number(f"{path}[{k}]", each) for k, each in enumerate(value)])


def _at_most(path: str, value: float, top: float) -> float:
    if value > top:
        raise InputError(f"{path} must be at most {top}, the number of initial pages, got {value!r}")
    return value


def _shares(B: int, version: str) -> Array:
    """Return the share of the initial pages in each bucket (B,)."""
    share: Array = np.ones(B)
    if version == "v2":
        quarter = round(B / 4)
        share[:quarter] = share[B - quarter :] = 3.0
    share /= share.sum()
    return share


def _change_fractions(place: _Place, B: int, version: str) -> Array:
    """Return the change fraction a (B,) of each bucket, by interpolation of the mean lifetimes."""
    given = [place.get("change", key) for key in ("quantile", "mean_lifetime_days")]
    if not all(isinstance(each, list) and len(each) >= 2 for each in given):
        raise InputError(
            f"change.quantile and change.mean_lifetime_days must be lists of 2 or more numbers, got {given!r}"
        )
    quantile = _row("change.quantile", _listed(given[0]), len(_listed(given[0])))
    lifetime = _row("change.mean_lifetime_days", _listed(given[1]), quantile.size)
    if np.any(np.diff(quantile) <= 0.0) or quantile[0] < 0.0 or quantile[-1] > 1.0:
        raise InputError(f"change.quantile must be rising numbers from 0 to 1, got {given[0]!r}")
    if lifetime.min() <= 0.0:
        raise InputError(f"change.mean_lifetime_days must be above 0, got {given[1]!r}")
    middle = (np.arange(B) + 0.5) / B
    days = np.interp(middle, quantile, lifetime) * (2.0 if version == "v3" else 1.0)
    a: Array = -np.expm1(-place.number("", "period_days") / days)
    return a


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _weights(table: Table, strategy: str, T: int) -> Array:
    strategies = table.get("strategies")
    if not isinstance(strategies, Mapping) or strategy not in strategies:
        raise InputError(f"strategies.{strategy} is not one of {', '.join(strategy_names(table)) or 'the file'}")
    given, path = strategies[strategy], f"strategies.{strategy}"
    if not isinstance(given, Mapping) or not set(given) <= _STRATEGY:
        raise InputError(f"{path} must be a table with the keys weights and low, got {given!r}")
    weights = given.get("weights")
    if isinstance(weights, list):
        return _row(f"{path}.weights", weights, T)
    before = {"equal": 1.0, "last": 0.0, "last-heavy": _number(f"{path}.low", given.get("low", 0.0))}
    if not isinstance(weights, str) or weights not in before:
        raise InputError(f"{path}.weights must be {', '.join(before)} or a list of {T} numbers, got {weights!r}")
    return np.append(np.full(T - 1, before[weights]), 1.0)
