"""Generated change traces, one for each kind of change, to find out which changes a policy handles badly.

Rates are changes per day. Sites have `SECTIONS` directories of equal size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.lab.simulate.trace import ADDED, DELETED, MODIFIED, ChangeTrace

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["KINDS", "SECTIONS", "generated_web"]

SECTIONS: Final = 12
_SLOWEST, _FASTEST = 10.0**-3.5, 10.0**0.5
_DEAD_PER_LIVE: Final = 3


def generated_web(kind: str, *, pages: int = 600, days: int = 730, seed: int = 0) -> ChangeTrace:
    """Return the change trace of a generated site; `kind` is one of `KINDS`."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    return KINDS[kind](rng, pages, days)


def _trace(changes: Flags) -> ChangeTrace:
    """Return the trace of pages that exist all the time; `changes` is (days, pages)."""
    days, pages = changes.shape
    day, page = np.nonzero(changes)
    kind = np.full(len(day), MODIFIED, dtype=np.int8)
    return ChangeTrace(_urls(pages), np.ones(pages, dtype=np.bool_), np.zeros(pages, int), day, page, kind, days)


def _urls(pages: int) -> list[str]:
    return [f"/s{page % SECTIONS}/{page}" for page in range(pages)]


def _drawn(rng: np.random.Generator, rate: Array, days: int) -> Flags:
    """Draw at random the days on which each page changes, (days, pages). `rate` is (pages,) or (days, pages)."""
    rates = np.broadcast_to(rate, (days, rate.shape[-1]))
    return np.asarray(rng.random(rates.shape) < -np.expm1(-rates))


def _rates(rng: np.random.Generator, pages: int) -> Array:
    return np.asarray(np.exp(rng.uniform(np.log(_SLOWEST), np.log(_FASTEST), pages)))


def _independent(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Pages change by Poisson processes, at rates that differ by factors up to 10,000."""
    return _trace(_drawn(rng, _rates(rng, pages), days))


def _two_classes(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """A third of the pages change every five days, the others every five hundred days."""
    return _trace(_drawn(rng, np.where(rng.random(pages) < 1 / 3, 1 / 5, 1 / 500), days))


def _abrupt(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Halfway through the trace, the pages' change rates are shuffled at random."""
    rates = _rates(rng, pages)
    by_day = np.where(np.arange(days)[:, None] < days // 2, rates, rng.permutation(rates))
    return _trace(_drawn(rng, by_day, days))


def _rhythm(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Each page changes after a fixed number of days, between a week and half a year."""
    every = np.rint(np.exp(rng.uniform(np.log(7), np.log(180), pages)))
    return _trace((np.arange(days)[:, None] + np.floor(rng.random(pages) * every)) % every == 0)


def _releases(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Four fifths of a directory change at once, several times a year."""
    changes = _drawn(rng, np.full(pages, 1 / 1000), days)
    section = np.arange(pages) % SECTIONS
    for number in range(SECTIONS):
        for day in np.flatnonzero(rng.random(days) < rng.uniform(1, 8) / 365):
            changes[day] |= (section == number) & (rng.random(pages) < 0.8)
    return _trace(changes)


def _too_fast(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Two fifths of the pages change every day, too fast for any budget; the rest change independently."""
    slow = np.exp(rng.uniform(np.log(_SLOWEST), np.log(0.03), pages))
    return _trace(_drawn(rng, np.where(rng.random(pages) < 0.4, 5.0, slow), days))


def _bursts(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Directories are edited page by page for some weeks, then rest for a long time."""
    rate = np.full((days, pages), 1 / 2000)
    section = np.arange(pages) % SECTIONS
    for number in range(SECTIONS):
        for day in np.flatnonzero(rng.random(days) < 2.5 / 365):
            rate[day : day + int(rng.uniform(7, 40)), section == number] = rng.uniform(0.02, 0.2)
    return _trace(_drawn(rng, rate, days))


def _dead_links(rng: np.random.Generator, pages: int, days: int) -> ChangeTrace:
    """Pages change independently; for each of them, there are three other URLs that exist for less than a day."""
    live = _trace(_drawn(rng, np.minimum(_rates(rng, pages), 0.5), days))
    dead = pages * _DEAD_PER_LIVE
    at = rng.integers(0, days, dead)
    day = np.concatenate([live.day, np.repeat(at, 2)])
    page = np.concatenate([live.page, np.repeat(np.arange(pages, pages + dead), 2)])
    kind = np.concatenate([live.kind, np.tile(np.array([ADDED, DELETED], dtype=np.int8), dead)])
    order = np.argsort(day, kind="stable")
    alive = np.arange(pages + dead) < pages
    born = np.concatenate([np.zeros(pages, dtype=np.int64), at])
    return ChangeTrace(_urls(pages + dead), alive, born, day[order], page[order], kind[order], days)


KINDS: Final[dict[str, Callable[[np.random.Generator, int, int], ChangeTrace]]] = {
    "independent": _independent,
    "two-classes": _two_classes,
    "abrupt": _abrupt,
    "rhythm": _rhythm,
    "releases": _releases,
    "too-fast": _too_fast,
    "bursts": _bursts,
    "dead-links": _dead_links,
}
"""All names that `generated_web` accepts."""
