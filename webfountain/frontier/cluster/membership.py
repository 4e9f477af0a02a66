"""The membership of one ant among the ants of a store: its term, its roles, its part of the sites and of the budget.

Place in the walk: the loop thread makes a request when a heartbeat is due (`request`). A separate thread carries it out
(`heartbeats`). The loop thread drops what was lost (`heart`) and then applies the result (`take_in`). Only then does a
new term begin. Each ant has the mean number of sites, give or take a quarter (`most_sites`, `surplus`). Sites move with
their address, so an address with many sites limits this balance. This module fetches nothing and owns no site. A
`LoneAnt` has its store to itself: it waits for nobody and claims nothing. The rest of the frontier uses both classes
through `Others`.
"""

from __future__ import annotations

import time
from math import ceil, inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.cluster.ant_notes import ANT, COUNTING, ROLE, Colony, CoreLoad
from webfountain.frontier.cluster.heartbeats import CopyReach, HeartbeatRequest, Heartbeats
from webfountain.frontier.cluster.term import EndlessTerm, Term, steady_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.frontier.cluster.ant_notes import AntNote
    from webfountain.frontier.cluster.heartbeats import ControllerState, HeartbeatResult
    from webfountain.frontier.cluster.loans import Loan
    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["LoneAnt", "Membership", "Others", "join_ants", "most_sites", "surplus"]

_SOON: Final = 0.1
"""An ant that became idle reports this after this share of a heartbeat."""
UNEVEN: Final = 0.25
"""An ant may have more or fewer sites than the mean by this share of the mean, plus a site or two."""
FEW: Final = 2


class LoneAnt:
    """The only ant of a store. It makes the plans, and it reads all counts itself."""

    ants: Final = 1

    def __init__(self, owner: str, *, lease_s: float) -> None:
        self.owner = owner
        self.shared = False
        self.rules = True
        self.counts = True
        self.term = EndlessTerm(lease_s)

    def most_sites(self, stored: float) -> int | None:
        """Return None: this process takes as many sites as it has room for."""
        del stored
        return None

    def idle_since(self) -> float:
        """Return -inf, because there is no other ant that could be busy."""
        return -inf

    def end_within(self, seconds: float) -> None:
        """Do nothing: there is no server to wait for."""
        del seconds

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Do nothing: there are no claims."""
        del claimed, at


class Membership:
    """The term of one ant, its roles, and its part of the sites and of the budget.

    Parameters
    ----------
    start : when the first heartbeat is due, UTC seconds
    plans : whether there is anything to plan. If not, no ant takes the controller's role
    """

    def __init__(
        self,
        owner: str,
        *,
        heartbeat_s: float,
        term: Term,
        heartbeats: Heartbeats,
        copies: CopyReach,
        load: CoreLoad,
        start: float,
        plans: bool,
    ) -> None:
        self.owner = owner
        self.heartbeat_s = heartbeat_s
        self.term = term
        self.heartbeats = heartbeats
        self.copies = copies
        self.load = load
        self.shared = True
        """Whether other ants may use the store."""
        self._plans = plans
        self._due = start
        self._out = False
        self._idle_since: float | None = None
        self.rules = False
        """True if this ant is the controller."""
        self.counts = False
        """True if this ant computes the sum of all notes."""
        self.colony = Colony()
        self._sites = 0

    def lapse(self, at: float) -> None:
        """End the term, because the store went back in time. `at` is now. The next heartbeat is then due at once."""
        self.term.lapse()
        self._due = min(self._due, at)

    # -------------------------------------------------------- the heartbeat

    def next_at(self) -> float:
        """Return when the next heartbeat is due, UTC seconds."""
        return self._due

    def is_due(self, at: float) -> bool:
        """Return whether a heartbeat is due and the previous one has ended."""
        return not self._out and at >= self._due

    def request(
        self,
        note: AntNote,
        *,
        leases: Sequence[SiteLease],
        claimed: Sequence[str],
        controller: ControllerState,
        loans: Sequence[Loan] = (),
        borrowed_sites: frozenset[str] | None = None,
    ) -> HeartbeatRequest:
        """Return the request of a heartbeat that `is_due`.

        Parameters
        ----------
        note : what the ant reports; since when it is idle and its load are added here
        controller : the state to store if this ant is the controller; else the newest state that it knows
        loans : slots that it lends
        borrowed_sites : sites of which it borrows slots; None if ants do not lend slots
        """
        self._out, self._sites = True, note.sites
        self._due = note.at + self.heartbeat_s * (0.5 if borrowed_sites else 1.0)
        self.load.measure()
        note = msgspec.structs.replace(note, idle_since=self._idle_since, load=self.load.share)
        notes = {f"{ANT}{self.owner}": note, COUNTING: self.colony} | ({ROLE: controller} if self._plans else {})
        packed = {name: msgspec.msgpack.encode(each) for name, each in notes.items()}
        steady = self.term.now()
        return HeartbeatRequest(note, steady, leases, claimed, packed, controller.plan, loans, borrowed_sites)

    def take_in(self, result: HeartbeatResult) -> None:
        """Begin a new term after a heartbeat. Call it after the lost sites and addresses were dropped."""
        self._out = False
        self.term.renew(result.request.steady)
        self.rules = result.is_controller
        self.counts = result.counts
        self.colony = result.colony

    # ------------------------------------------------------------ the others

    def share(self) -> float:
        """Return this ant's share of the crawl's budget. It is proportional to the ant's number of sites plus one."""
        mine = self._sites + 1
        return mine / max(self.colony.sites + self.colony.ants, mine)

    def fair(self) -> float:
        """Return the number of sites that each ant would have if all had the same number."""
        return self.colony.sites / self.colony.takers

    @property
    def ants(self) -> int:
        """The number of ants, this one included."""
        return self.colony.ants

    def most_sites(self, stored: float) -> int | None:
        """Return the largest number of sites that this ant takes if the store has `stored` sites.

        This is slightly more than the ant's equal part. The result is None while there is no other ant.
        """
        colony = self.colony
        if colony.ants < 2:
            return None
        return most_sites(max(self.fair(), stored / colony.takers), colony.fewest)

    def rest(self, *, resting: bool, at: float) -> None:
        """Record whether this ant is idle: nothing is in flight, and nothing becomes due soon."""
        if not resting:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = at
            # The other ants wait for this note.
            self._due = min(self._due, at + _SOON * self.heartbeat_s)

    def idle_since(self) -> float | None:
        """Return a time at which, by their notes, all ants were idle; None if there was none."""
        own, all_idle = self._idle_since, self.colony.idle_since
        return all_idle if own is not None and all_idle is not None and own <= all_idle else None

    # --------------------------------------------------------------- the end

    def end_within(self, seconds: float) -> None:
        """Limit the wait for the store to this many seconds, because this ant is ending."""
        self.heartbeats.end_within(seconds)

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Drop the claims, each as of its own time, and then the claim of the ant's name. It runs in the worker
        thread."""
        self.heartbeats.sign_off(claimed, at=at)


Others = Membership | LoneAnt
"""The other ants of a store, as the rest of the frontier uses them."""


def join_ants(
    store: FrontierStore,
    claims: Claims,
    *,
    owner: str,
    heartbeat_s: float,
    start: float,
    plans: bool = False,
    reaches: Callable[[int], bool] | None = None,
    steady: Callable[[], float] = steady_clock,
    cpu: Callable[[], float] = time.process_time,
) -> Membership:
    """Create the membership of one ant.

    Parameters
    ----------
    claims : claims of the shared store (`store.contract.Claims`)
    plans : whether there is anything to plan. If not, no ant takes the controller's role
    reaches : returns whether this ant can read the copies of the ant with this number; None: this ant stores none
    """
    term, copies = Term(heartbeat_s, steady=steady), CopyReach(claims, reaches)
    store.lives.before_loss(term.lapse)  # at once: the loop thread reads of the loss a batch later
    return Membership(
        owner,
        heartbeat_s=heartbeat_s,
        term=term,
        heartbeats=Heartbeats(store, claims, owner=owner, lease_s=term.lease_s, copies=copies),
        copies=copies,
        load=CoreLoad(steady, cpu),
        start=start,
        plans=plans,
    )


def most_sites(mean: float, fewest: int) -> int:
    """Return the maximum number of sites of an ant. If another ant has too few, the maximum is the mean."""
    return ceil(mean) if _is_short(mean, fewest) else int(mean * (1.0 + UNEVEN)) + FEW


def surplus(mine: int, mean: float, fewest: int) -> int:
    """Return how many of its sites an ant should give up. `fewest` is the smallest number of sites of an ant."""
    if mine > mean * (1.0 + UNEVEN) + FEW:
        return mine - int(mean)
    if _is_short(mean, fewest):
        return max(mine - ceil(mean), 0)
    return 0


def _is_short(mean: float, fewest: int) -> bool:
    """Return whether an ant has so few sites that the others must give some of theirs, even if none has too many."""
    return fewest < mean * (1.0 - UNEVEN) - 0.5
