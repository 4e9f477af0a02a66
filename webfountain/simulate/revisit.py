"""`simulate revisit`: a virtual crawler with K fetches a day over the change trace of a real site, policy by policy.

Whole days: first the day's K fetches, then the day's events; obsolete pages are counted at the day's end. Pages alive
at the start are known and freshly crawled then; a page born later, or again, is known at once and obsolete until it is
fetched, and every policy but ``clairvoyant`` fetches such pages first (the lowest page first), so that the table
compares recrawling. A page found deleted is dropped. The policies are in `rivals`, and the model's plans here.

`fountain` chooses at a price by the crawl's own objects (`rivals.AtAPrice`) and spends its day in `ROUNDS`, as a crawl
spends its budget evenly; each round learns of those before. What a round finds no page for that is worth the price is
made up for within a day: so a day may have up to twice K fetches, all days together never more than K each.

The model's plans in the simulation: histories to buckets, buckets to a plan per cycle, the plan to due pages. Plans
are made by the same `make_plan` as the crawl's, from the same estimates; a period is a day, a cycle 14. Days are
counted from the start, the clocks' seconds from its midnight.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from webfountain.core.activity import Signals
from webfountain.core.buckets import BUCKETS, Census, Phases, bucket_of, intervals_of
from webfountain.core.change_rate import NO_HISTORY, Prior, append, estimate_interval
from webfountain.core.rank import importance_by_depth
from webfountain.errors import InputError, NotConverged
from webfountain.frontier.planning.plan import Bounds, make_plan
from webfountain.policy import CycleTable, PositiveDuration
from webfountain.simulate.rivals import (
    ABLATIONS,
    ADDED,
    DELETED,
    IMPORTANCE,
    RANKING,
    SITEMAP,
    AtAPrice,
    ChangeTrace,
    Clairvoyant,
    Fetches,
    Learner,
    NutchAdaptive,
    PoissonLearned,
    PoissonOracle,
    Proportional,
    Sitemap,
    SitemapReader,
    Uniform,
    UrgencyPolicy,
    load_trace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    _Choice = Callable[["_Web", int, Learner, int], Pages]
    _Day = Callable[["_Web", int], tuple[int, int]]

__all__ = [
    "PLANS",
    "POLICIES",
    "Planned",
    "Replay",
    "policy_names",
    "replay",
    "replay_at_a_price",
    "replay_learner",
    "simulate_revisit",
]

PLANS: Final[dict[str, Literal[1, 2, 3]]] = {"strategy-1": 1, "strategy-2": 2, "strategy-3": 3}
"""Policy name to strategy."""

_PERIOD = 86400.0
_FASTEST = _PERIOD / 96
_PERIODS = 14


class Planned:
    """Greatest progress of the phase clock first; a new plan every `_PERIODS` days."""

    def __init__(self, pages: int, strategy: Literal[1, 2, 3], *, capacity: int, seed: int) -> None:
        self._capacity, self._seed = capacity, seed
        self._cycle = CycleTable(
            periods=_PERIODS, period=PositiveDuration(_PERIOD), capacity_pages_per_period=capacity, strategy=strategy
        )
        speed = 1 / intervals_of(np.arange(BUCKETS), _FASTEST)
        self._clocks = Phases.running(speed, start=0.0)
        self._counts = np.zeros((4, BUCKETS))  # fetches, changes, seconds watched, births; halved each cycle
        self._history = [NO_HISTORY] * pages
        self._changes, self._watched, self._arrived = 0.5, 60.0, 0.0  # the site's prior, in changes, days and pages
        self._bucket = np.full(pages, bucket_of(self._prior().interval, _FASTEST), dtype=np.int64)
        self._marks = self._clocks.at(0.0)[self._bucket]

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        if day % _PERIODS == 0 and len(pages):
            self._plan(day, pages, tau)
        return np.asarray(self._phase_after(day)[self._bucket[pages]] - self._marks[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        checked = ~fetches.first & ~fetches.gone & (fetches.tau > 0)
        self._arrived += np.count_nonzero(fetches.first)
        self._changes += np.count_nonzero(fetches.changed & checked)
        self._watched += float(np.where(fetches.changed, fetches.tau / 2 + 0.25, fetches.tau)[checked].sum())
        self._count(fetches, checked)
        prior = self._prior()
        for page, tau, changed in zip(
            fetches.pages[checked].tolist(),
            fetches.tau[checked].tolist(),
            fetches.changed[checked].tolist(),
            strict=True,
        ):
            history = self._history[page] = append(self._history[page], tau * _PERIOD, changed)
            self._bucket[page] = bucket_of(estimate_interval(history, prior=prior), _FASTEST)
        self._bucket[fetches.pages[fetches.first]] = bucket_of(prior.interval, _FASTEST)
        self._marks[fetches.pages] = self._phase_after(day)[self._bucket[fetches.pages]]

    def _phase_after(self, day: int) -> Array:
        """(256,) phases of the clocks at the day's end: its own share is to be spent in it."""
        return self._clocks.at((day + 1) * _PERIOD)

    def _count(self, fetches: Fetches, checked: Flags) -> None:
        bucket = self._bucket[fetches.pages]
        for count, weight in zip(
            self._counts,
            (checked, checked & fetches.changed, checked * fetches.tau * _PERIOD, fetches.first),
            strict=True,
        ):
            np.add.at(count, bucket, weight)

    def _prior(self) -> Prior:
        return Prior(self._watched / self._changes * _PERIOD)

    def _plan(self, day: int, pages: Pages, tau: Pages) -> None:
        """A plan for the next cycle; if the solver gets nowhere the last one stays."""
        census = self._census(day, pages, tau)
        with suppress(NotConverged):
            plan = make_plan(
                census,
                at=day * _PERIOD,
                cycle=self._cycle,
                bounds=Bounds(),
                clocks=self._clocks,
                solver="calendars",
                seed=self._seed,
            )
            self._clocks = plan.clocks()
        self._counts /= 2

    def _census(self, day: int, pages: Pages, tau: Pages) -> Census:
        planned, at = np.unique(self._bucket[pages], return_inverse=True)
        number = np.bincount(at).astype(np.float64)
        fetches, changes, watched, births = self._counts[:, planned]
        return Census(
            planned.astype(np.int64),
            number,
            mean_age=np.bincount(at, weights=tau * _PERIOD) / number,
            fetches=fetches,
            changes=changes,
            watched=watched,
            seconds=fetches,
            links=np.zeros(len(planned)),
            births=births,
            new_fetches=births.sum(),
            new_seconds=births.sum(),
            new_links=0.0,
            waiting=0.0,
            arrivals=min(self._arrived / max(day, 1), self._capacity / 2),
        )


POLICIES = (
    "uniform",
    "proportional",
    "nutch-adaptive",
    "poisson-oracle",
    "poisson-learned",
    *PLANS,
    RANKING,
    *ABLATIONS,
    IMPORTANCE,
    SITEMAP,
    "clairvoyant",
)
"""Every name that ``--policies`` takes; ``all`` stands for those without a signal switched off or on."""

ROUNDS: Final = 4
"""Times a day that `fountain` asks which pages are worth the price: 20 change the shares by 3 %, of one site by 5 %."""

_DAILY_FORMATS = (".npz", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Replay:
    """What one policy did: one element per day."""

    obsolete: Pages
    alive: Pages
    fetches: Pages
    found: Pages
    """Fetches that found the page obsolete."""
    weighted_obsolete: npt.NDArray[np.float64]
    """Importance of the obsolete pages, by depth."""
    weighted_alive: npt.NDArray[np.float64]
    """Importance of the alive pages."""

    @property
    def obsolete_share(self) -> float:
        """Obsolete alive pages over alive pages, both summed over day ends; 0 when no page ever lived."""
        return float(self.obsolete.sum() / max(1, self.alive.sum()))

    @property
    def weighted_share(self) -> float:
        """The same with each page counted by its importance."""
        total = float(self.weighted_alive.sum())
        return float(self.weighted_obsolete.sum()) / total if total else 0.0


def simulate_revisit(
    events: Path,
    pages: Path,
    *,
    start: str,
    days: int,
    fetches_per_day: int,
    policies: Sequence[str],
    served: bool = False,
    min_change: float = 0.05,
    exclude: str | None = None,
    seed: int = 0,
    daily: Path | None = None,
) -> dict[str, Any]:
    """Replay a trace under each policy; returns the JSON document of `simulate revisit` (DESIGN section 7).

    Parameters
    ----------
    events, pages, start, days, served, min_change, exclude : see `trace.load_trace`
    fetches_per_day : K, at least 1
    policies : names out of `POLICIES`, or "all"
    seed : of the solver behind the plans; the same seed gives the same table
    daily : file for obsolete, alive and fetches of each day and policy: ``.npz`` (arrays "POLICY/obsolete" …),
        ``.csv`` or ``.parquet`` (columns policy, day, obsolete, alive, fetches)

    Raises InputError for an argument or a file that cannot be used, before anything is replayed.
    """
    names = policy_names(policies)
    if fetches_per_day < 1:
        raise InputError(f"--fetches-per-day: {fetches_per_day} is below 1")
    if daily is not None and daily.suffix not in _DAILY_FORMATS:
        raise InputError(f"--daily: {daily}: the suffix is none of {', '.join(_DAILY_FORMATS)}")
    trace = load_trace(events, pages, start=start, days=days, served=served, min_change=min_change, exclude=exclude)
    replays = {name: replay(trace, fetches_per_day, name, seed=seed) for name in names}
    if daily is not None:
        _write_daily(daily, replays)
    return {
        "start": start,
        "days": days,
        "pages": len(trace.urls),
        "fetches_per_day": fetches_per_day,
        "policies": {
            name: {
                "obsolete": one.obsolete_share,
                "fetches": int(one.fetches.sum()),
                "changes_found": int(one.found.sum()),
            }
            for name, one in replays.items()
        },
    }


def replay(trace: ChangeTrace, fetches_per_day: int, policy: str, *, seed: int = 0) -> Replay:
    """Replay a trace under one policy of `POLICIES`."""
    if policy in ABLATIONS or policy == IMPORTANCE:
        signals = ABLATIONS.get(policy, Signals())
        crawl = AtAPrice(trace, fetches_per_day, signals=signals, weighed=policy == IMPORTANCE)
        return replay_at_a_price(trace, fetches_per_day, crawl)
    learner = _learner(policy, trace, fetches_per_day, seed)
    if policy == "clairvoyant":
        return _replayed(trace, _Ranked(_Web.obsolete_pages_first, learner, fetches_per_day, errands=0))
    errands = int(policy == SITEMAP)  # the sitemap costs a fetch
    return replay_learner(trace, fetches_per_day, learner, errands=errands)


def replay_learner(trace: ChangeTrace, fetches_per_day: int, learner: Learner, *, errands: int = 0) -> Replay:
    """Replay a trace under a policy of one's own; `errands` of each day's fetches go for what is no page."""
    return _replayed(trace, _Ranked(_Web.never_crawled_first, learner, fetches_per_day, errands=errands))


def replay_at_a_price(trace: ChangeTrace, fetches_per_day: int, crawl: AtAPrice) -> Replay:
    """Replay a trace under a price; `crawl` is at its begin."""
    return _replayed(trace, _Priced(crawl, fetches_per_day))


def _replayed(trace: ChangeTrace, spend: _Day) -> Replay:
    web = _Web(trace)
    counts = np.zeros((4, trace.days), dtype=np.int64)
    weights = np.zeros((2, trace.days))
    for day in range(trace.days):
        spent = spend(web, day)
        web.live(day)
        counts[:, day] = (*web.census(), *spent)
        weights[:, day] = web.importance()
    return Replay(*counts, *weights)


class _Ranked:
    """A day's fetches at once, those of the greatest score; how many there were, and how many found a change."""

    def __init__(self, choose: _Choice, learner: Learner, fetches_per_day: int, *, errands: int) -> None:
        self._choose, self._learner = choose, learner
        self._fetches, self._errands = fetches_per_day, errands

    def __call__(self, web: _Web, day: int) -> tuple[int, int]:
        fetches = web.fetch(day, self._choose(web, day, self._learner, self._fetches - self._errands))
        self._learner.learn(day, fetches)
        return self._errands + len(fetches.pages), int(np.count_nonzero(fetches.changed))


class _Priced:
    """The same in rounds, of pages that are worth the price."""

    def __init__(self, crawl: AtAPrice, fetches_per_day: int) -> None:
        self._crawl, self._fetches = crawl, fetches_per_day
        self._room = 0.0

    def __call__(self, web: _Web, day: int) -> tuple[int, int]:
        made = found = 0
        for number in range(ROUNDS):
            self._room = min(self._room + self._fetches / ROUNDS, self._fetches)
            at = (day + number / ROUNDS) * _PERIOD
            never = web.never_crawled(int(self._room))
            chosen = self._crawl.choose(at, int(self._room) - len(never))
            fetches = web.fetch(day, np.concatenate([never, chosen]))
            self._crawl.learn(at, fetches)
            self._room -= len(fetches.pages)
            made += len(fetches.pages)
            found += int(np.count_nonzero(fetches.changed))
        return made, found


class _Web:
    """The pages and our copies of them."""

    def __init__(self, trace: ChangeTrace) -> None:
        self._trace = trace
        self._alive, self._known = trace.alive.copy(), trace.alive.copy()
        self._never = np.zeros(len(trace.urls), dtype=np.bool_)
        self._obsolete = np.zeros(len(trace.urls), dtype=np.bool_)
        self._last = np.zeros(len(trace.urls), dtype=np.int64)
        self._importance = importance_by_depth(trace.urls)
        self._first_event = np.searchsorted(trace.day, np.arange(trace.days + 1))

    def never_crawled(self, count: int) -> Pages:
        return np.flatnonzero(self._never)[:count]

    def never_crawled_first(self, day: int, learner: Learner, count: int) -> Pages:
        never = self.never_crawled(count)
        candidates = np.flatnonzero(self._known & ~self._never)
        chosen = self._best(day, learner, candidates, count - len(never))
        return np.concatenate([never, chosen])

    def obsolete_pages_first(self, day: int, learner: Learner, count: int) -> Pages:
        return self._best(day, learner, np.flatnonzero(self._obsolete & self._alive), count)

    def _best(self, day: int, learner: Learner, candidates: Pages, count: int) -> Pages:
        scores = learner.score(day, candidates, day - self._last[candidates])
        if count >= len(candidates):
            return candidates
        if count <= 0:
            return candidates[:0]
        # Only those at or above the count-th score need sorting; stable, so that ties go to the lower page.
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        front = np.flatnonzero(scores >= least)
        return candidates[front[np.argsort(-scores[front], kind="stable")[:count]]]

    def fetch(self, day: int, pages: Pages) -> Fetches:
        alive = self._alive[pages]
        changed, first = self._obsolete[pages] & alive, self._never[pages]
        self._known[pages[~alive]] = False
        self._never[pages] = self._obsolete[pages] = False
        found = Fetches(pages, day - self._last[pages], first, changed, ~alive, int(np.count_nonzero(self._never)))
        self._last[pages] = day
        return found

    def live(self, day: int) -> None:
        """The day's events; a page born (again) is known, never crawled and obsolete."""
        begin, end = self._first_event[day], self._first_event[day + 1]
        for page, kind in zip(self._trace.page[begin:end].tolist(), self._trace.kind[begin:end].tolist(), strict=True):
            self._alive[page] = kind != DELETED
            if kind == ADDED:
                self._known[page] = self._never[page] = True
                self._last[page] = day
            if kind != DELETED:
                self._obsolete[page] = True

    def census(self) -> tuple[int, int]:
        """(Obsolete alive pages, alive pages)."""
        return int(np.count_nonzero(self._obsolete & self._alive)), int(np.count_nonzero(self._alive))

    def importance(self) -> tuple[float, float]:
        """The census with each page counted by its importance."""
        obsolete = self._obsolete & self._alive
        return float(self._importance[obsolete].sum()), float(self._importance[self._alive].sum())


def _learner(policy: str, trace: ChangeTrace, capacity: int, seed: int) -> Learner:
    pages = len(trace.urls)
    ranking = UrgencyPolicy(trace.urls, signals=Signals().lasting(int(trace.alive.sum()) / capacity))
    if policy == SITEMAP:
        return SitemapReader(ranking, Sitemap(trace, seed=seed))
    if policy in PLANS:
        return Planned(pages, PLANS[policy], capacity=capacity, seed=seed)
    simple: dict[str, Learner] = {
        "uniform": Uniform(),
        "proportional": Proportional(trace),
        "nutch-adaptive": NutchAdaptive(pages),
        "poisson-oracle": PoissonOracle(trace),
        "poisson-learned": PoissonLearned(pages),
        RANKING: ranking,
        "clairvoyant": Clairvoyant(trace),
    }
    return simple[policy]


def policy_names(policies: Sequence[str]) -> list[str]:
    """The named policies once each, in the order given, "all" resolved. Raises InputError for any other name."""
    plain = [name for name in POLICIES if "fountain" not in name or name == "fountain"]
    names = [name for given in policies for name in (plain if given == "all" else [given])]
    for name in names:
        if name not in POLICIES:
            raise InputError(f"--policies: {name!r} is none of all, {', '.join(POLICIES)}")
    if not names:
        raise InputError(f"--policies: none given; choose from all, {', '.join(POLICIES)}")
    return list(dict.fromkeys(names))


def _write_daily(file: Path, replays: dict[str, Replay]) -> None:
    columns = ("obsolete", "alive", "fetches")
    try:
        if file.suffix == ".npz":
            np.savez_compressed(
                file,
                **{f"{name}/{column}": getattr(one, column) for name, one in replays.items() for column in columns},
            )
            return
        _write_table(file, replays, columns)
    except OSError as error:
        raise InputError(f"--daily: {file}: {error.strerror or error}") from error


def _write_table(file: Path, replays: dict[str, Replay], columns: tuple[str, ...]) -> None:
    import pyarrow as pa  # noqa: PLC0415  (start-up time of the command line)
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    policy = [name for name, one in replays.items() for _ in one.alive]
    day = np.concatenate([np.arange(len(one.alive)) for one in replays.values()])
    rows = {column: np.concatenate([getattr(one, column) for one in replays.values()]) for column in columns}
    table = pa.table({"policy": policy, "day": day, **rows})
    if file.suffix == ".csv":
        pyarrow.csv.write_csv(table, file)
    else:
        pyarrow.parquet.write_table(table, file)
