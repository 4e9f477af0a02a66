"""The command `simulate revisit`: each policy makes K fetches per day over a change trace.

A simulated day begins with K fetches, continues with the day's events, and ends with a count of the obsolete pages. At
the start of the trace, all live pages have just been crawled. A page that is born during the trace is known at once,
and counts as obsolete until it is fetched. Every policy except ``clairvoyant`` first fetches the pages that have no
copy. A page is dropped when a fetch finds it deleted.

`fountain` uses the crawl's own objects, which fetch a page when its urgency reaches a price (`at_a_price.AtAPrice`).
Every policy may keep unused fetches for one day, so a day may have up to 2K fetches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from webfountain.core.importance import importance_by_depth
from webfountain.core.signals import Signals
from webfountain.errors import InputError
from webfountain.lab.simulate.at_a_price import (
    ABLATIONS,
    IMPORTANCE,
    RANKING,
    SITEMAP,
    AtAPrice,
    UrgencyPolicy,
)
from webfountain.lab.simulate.bound import least_obsolete_share
from webfountain.lab.simulate.planned import PERIOD, PlannedPolicy
from webfountain.lab.simulate.rivals import (
    Clairvoyant,
    Fetches,
    GreedyBayes,
    LearnedPoisson,
    Learner,
    NutchAdaptive,
    PoissonOracle,
    Proportional,
    Uniform,
)
from webfountain.lab.simulate.trace import ADDED, DELETED, ChangeTrace, Sitemap, load_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Pages = npt.NDArray[np.int64]
    _Choice = Callable[["_Web", int, Learner, int], Pages]
    _Day = Callable[["_Web", int], tuple[int, int]]

__all__ = [
    "PLANS",
    "POLICIES",
    "ROUNDS",
    "Pages",
    "Replay",
    "policy_names",
    "replay",
    "replay_at_a_price",
    "replay_clairvoyant",
    "replay_learner",
    "simulate_revisit",
]

PLANS: Final[dict[str, Literal[1, 2, 3]]] = {"strategy-1": 1, "strategy-2": 2, "strategy-3": 3}
"""The strategy of each plan, by the name of the policy that follows the plan."""

POLICIES = (
    "uniform",
    "proportional",
    "nutch-adaptive",
    "poisson-oracle",
    "poisson-learned",
    "greedy-bayes",
    *PLANS,
    RANKING,
    *ABLATIONS,
    IMPORTANCE,
    SITEMAP,
    "clairvoyant",
)
"""All names that ``--policies`` accepts. The name ``all`` stands for all policies except the variants of `fountain`."""

ROUNDS: Final = 4
"""How often per day `fountain` chooses pages."""

_DAILY_FORMATS = (".npz", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Replay:
    """The results of one policy; each array has one element per day."""

    obsolete: Pages
    alive: Pages
    fetches: Pages
    found: Pages
    """Number of fetches that found an obsolete page."""
    weighted_obsolete: npt.NDArray[np.float64]
    """Sum of the importance of all obsolete pages."""
    weighted_alive: npt.NDArray[np.float64]
    """Sum of the importance of all live pages."""

    @property
    def obsolete_share(self) -> float:
        """Number of obsolete live pages divided by number of live pages, each summed over the days."""
        return float(self.obsolete.sum() / max(1, self.alive.sum()))

    @property
    def weighted_share(self) -> float:
        """The share of obsolete pages, with each page weighted by its importance."""
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
    """Replay a trace under each policy, and return the JSON document of `simulate revisit` (DESIGN section 7).

    In the document, `bound` is a lower bound on the obsolete share of any policy.

    Parameters
    ----------
    events, pages, start, days, served, min_change, exclude : see `trace.load_trace`
    fetches_per_day : K, at least 1
    policies : names out of `POLICIES`, or "all"
    seed : seed for the solver of the plans; the same seed gives the same table
    daily : file for obsolete, alive and fetches of each day and policy: ``.npz`` (arrays "POLICY/obsolete" …),
        ``.csv`` or ``.parquet`` (columns policy, day, obsolete, alive, fetches)

    Raises InputError before the replay if an argument or a file cannot be used.
    """
    names = policy_names(policies)
    if fetches_per_day < 1:
        raise InputError(f"--fetches-per-day: {fetches_per_day} is below 1")
    if daily is not None and daily.suffix not in _DAILY_FORMATS:
        raise InputError(f"--daily: {daily}: the suffix must be one of {', '.join(_DAILY_FORMATS)}")
    trace = load_trace(events, pages, start=start, days=days, served=served, min_change=min_change, exclude=exclude)
    replays = {name: replay(trace, fetches_per_day, name, seed=seed) for name in names}
    if daily is not None:
        _write_daily(daily, replays)
    return {
        "start": start,
        "days": days,
        "pages": len(trace.urls),
        "fetches_per_day": fetches_per_day,
        "bound": least_obsolete_share(trace, fetches_per_day, float(replays[names[0]].alive.sum())),
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
    if policy in ABLATIONS or policy in (IMPORTANCE, SITEMAP):
        signals = ABLATIONS.get(policy, Signals())
        sitemap = Sitemap(trace, seed=seed) if policy == SITEMAP else None
        crawl = AtAPrice(trace, fetches_per_day, signals=signals, weighed=policy == IMPORTANCE, sitemap=sitemap)
        return replay_at_a_price(trace, fetches_per_day, crawl)
    if policy == "clairvoyant":
        return replay_clairvoyant(trace, fetches_per_day, most_saved=fetches_per_day)
    learner = _learner(policy, trace, fetches_per_day, seed)
    return replay_learner(trace, fetches_per_day, learner)


def replay_clairvoyant(trace: ChangeTrace, fetches_per_day: int, *, most_saved: int) -> Replay:
    """Replay a trace under the policy that knows which pages are obsolete. At most `most_saved` unused fetches are kept
    for the next day.
    """
    first, policy = _Web.obsolete_pages_first, Clairvoyant(trace)
    return _replayed(trace, _RankedDay(first, policy, fetches_per_day, most_saved=most_saved))


def replay_learner(trace: ChangeTrace, fetches_per_day: int, learner: Learner) -> Replay:
    """Replay a trace under a policy that learns from its own fetches."""
    return _replayed(trace, _RankedDay(_Web.never_crawled_first, learner, fetches_per_day))


def replay_at_a_price(trace: ChangeTrace, fetches_per_day: int, crawl: AtAPrice) -> Replay:
    """Replay a trace under a simulated crawl that fetches pages at a price."""
    return _replayed(trace, _PricedDay(crawl, fetches_per_day))


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


class _RankedDay:
    """Spends the fetches of one day on the pages with the greatest scores."""

    def __init__(
        self, choose: _Choice, learner: Learner, fetches_per_day: int, *, most_saved: int | None = None
    ) -> None:
        self._choose, self._learner = choose, learner
        self._fetches = fetches_per_day
        self._most_saved = fetches_per_day if most_saved is None else most_saved
        self._saved = 0  # fetches of the previous day that were not made

    def __call__(self, web: _Web, day: int) -> tuple[int, int]:
        room = self._fetches + self._saved
        fetches = web.fetch(day, self._choose(web, day, self._learner, room))
        self._saved = min(room - len(fetches.pages), self._most_saved)
        self._learner.learn(day, fetches)
        return len(fetches.pages), int(np.count_nonzero(fetches.changed))


class _PricedDay:
    """Spends the fetches of one day, in rounds, on the pages that are worth the price."""

    def __init__(self, crawl: AtAPrice, fetches_per_day: int) -> None:
        self._crawl, self._fetches = crawl, fetches_per_day
        self._room = 0.0

    def __call__(self, web: _Web, day: int) -> tuple[int, int]:
        made, found = self._crawl.errands, 0
        self._room -= made
        for number in range(ROUNDS):
            self._room = min(self._room + self._fetches / ROUNDS, self._fetches)
            at = (day + number / ROUNDS) * PERIOD
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
        # Only pages at or above the count-th score need sorting. The sort is stable, so of equals the lower page wins.
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
        """Apply the day's events. A newly born page is known, never crawled and obsolete."""
        begin, end = self._first_event[day], self._first_event[day + 1]
        for page, kind in zip(self._trace.page[begin:end].tolist(), self._trace.kind[begin:end].tolist(), strict=True):
            self._alive[page] = kind != DELETED
            if kind == ADDED:
                self._known[page] = self._never[page] = True
                self._last[page] = day
            if kind != DELETED:
                self._obsolete[page] = True

    def census(self) -> tuple[int, int]:
        """Return the numbers of obsolete live pages and of live pages."""
        return int(np.count_nonzero(self._obsolete & self._alive)), int(np.count_nonzero(self._alive))

    def importance(self) -> tuple[float, float]:
        """Return the total importance of the obsolete live pages, and of the live pages."""
        obsolete = self._obsolete & self._alive
        return float(self._importance[obsolete].sum()), float(self._importance[self._alive].sum())


def _learner(policy: str, trace: ChangeTrace, capacity: int, seed: int) -> Learner:
    pages = len(trace.urls)
    ranking = UrgencyPolicy(trace.urls, signals=Signals().lasting(int(trace.alive.sum()) / capacity))
    if policy in PLANS:
        return PlannedPolicy(pages, PLANS[policy], capacity=capacity, seed=seed)
    simple: dict[str, Learner] = {
        "uniform": Uniform(),
        "proportional": Proportional(trace),
        "nutch-adaptive": NutchAdaptive(pages),
        "poisson-oracle": PoissonOracle(trace),
        "poisson-learned": LearnedPoisson(pages),
        "greedy-bayes": GreedyBayes(pages, trace.days),
        RANKING: ranking,
    }
    return simple[policy]


def policy_names(policies: Sequence[str]) -> list[str]:
    """Return the named policies in order, each once; "all" stands for all policies but the variants of `fountain`.
    Raises InputError for any other name.
    """
    plain = [name for name in POLICIES if "fountain" not in name or name == "fountain"]
    names = [name for given in policies for name in (plain if given == "all" else [given])]
    for name in names:
        if name not in POLICIES:
            raise InputError(f"--policies: {name!r} is unknown (allowed: all, {', '.join(POLICIES)})")
    if not names:
        raise InputError(f"--policies: none given (allowed: all, {', '.join(POLICIES)})")
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
