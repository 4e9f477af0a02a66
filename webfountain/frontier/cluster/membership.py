"""Manage an ant's term and roles, and its share of the sites and of the budget.

When a heartbeat is due, the loop thread makes a `request`. A separate thread carries out the heartbeat (`Heartbeats`),
so that no lease expires during a long batch. After a heartbeat, the loop thread drops lost sites and claims (`heart`),
and begins a new term (`take_in`). Each ant's number of sites differs from the mean by at most about a quarter
(`most_sites`, `surplus`). An ant that shares its store with no other ant is a `LoneAnt`.
"""

from __future__ import annotations

import time
from math import ceil, inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.frontier.cluster.ant_notes import ANT, COUNTING, FREE, ROLE, AntNote, Colony, CoreLoad, strike_off
from webfountain.frontier.cluster.loans import LoanClaims
from webfountain.frontier.cluster.term import Term, steady_clock
from webfountain.store.contract import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.frontier.cluster.loans import BorrowedSlots, Loan
    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = [
    "FEW",
    "ControllerState",
    "HeartbeatRequest",
    "HeartbeatResult",
    "Heartbeats",
    "LoneAnt",
    "Membership",
    "Others",
    "join_ants",
    "most_sites",
    "surplus",
]

_SOON: Final = 0.1
"""An ant that becomes idle sends its next heartbeat after this share of the usual interval."""
UNEVEN: Final = 0.25
"""An ant's number of sites may differ from the mean by this share of the mean."""
SPARE_SITES: Final = 2
FEW: Final = 16
"""With up to this many ants, each ant reads the notes of all ants. Among more than `FEW` ants, only one reads the
notes, because the cost would otherwise grow with the square of their number.
"""


class LoneAnt:
    """An ant that shares its store with no other ant."""

    ants: Final = 1

    def __init__(self, owner: str, *, lease_s: float) -> None:
        self.owner = owner
        self.shared = False
        self.rules = True
        self.counts = True
        self.lease_s = lease_s

    def most_sites(self, stored: float) -> int | None:
        """Return None, because a lone ant may have any number of sites."""
        del stored
        return None

    def idle_since(self) -> float:
        """Return -inf, because no other ant can be busy."""
        return -inf

    def end_within(self, seconds: float) -> None:
        """Do nothing."""
        del seconds

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Do nothing."""
        del claimed, at


class Membership:
    """One ant among several, with its term, its roles, and its share of the sites and of the budget.

    Parameters
    ----------
    start : when the first heartbeat is due, UTC seconds
    plans : whether there is anything to plan. If not, no ant takes the controller's role
    """

    def __init__(
        self,
        owner: str,
        claims: Claims,
        *,
        heartbeat_s: float,
        term: Term,
        heartbeats: Heartbeats,
        load: CoreLoad,
        start: float,
        plans: bool,
    ) -> None:
        self.owner = owner
        self.heartbeat_s = heartbeat_s
        self.term = term
        self.lease_s = term.lease_s
        self.heartbeats = heartbeats
        self._claims = claims
        self.load = load
        self.shared = True
        """True if other ants may use the store."""
        self._plans = plans
        self._due = start
        self._out = False
        self._idle_since: float | None = None
        self.rules = False
        """True if this ant is the controller."""
        self.counts = False
        """True if this ant computes the sums of the counts in the notes of all ants."""
        self.colony = Colony()
        self._sites = 0

    def lapse(self, at: float) -> None:
        """End the term because the store's server lost data, and make the next heartbeat due at once."""
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
        """Return the request for a heartbeat that is due.

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
        """Begin a new term after a heartbeat. The caller must drop lost sites and addresses before this call."""
        self._out = False
        self.term.renew(result.request.steady)
        self.rules = result.is_controller
        self.counts = result.counts
        self.colony = result.colony

    # ------------------------------------------------------------ the others

    def share(self) -> float:
        """Return this ant's share of the crawl's budget, which is proportional to its number of sites plus one."""
        mine = self._sites + 1
        return mine / max(self.colony.sites + self.colony.ants, mine)

    def fair(self) -> float:
        """Return the mean number of sites per ant with free disk space."""
        return self.colony.sites / self.colony.takers

    @property
    def ants(self) -> int:
        """The number of ants, this one included."""
        return self.colony.ants

    def most_sites(self, stored: float) -> int | None:
        """Return how many sites this ant may have if the store has `stored` sites. Return None if there is no other
        ant.
        """
        colony = self.colony
        if colony.ants < 2:
            return None
        return most_sites(max(self.fair(), stored / colony.takers), colony.fewest)

    def rest(self, *, resting: bool, at: float) -> None:
        """Record whether this ant has nothing in flight and nothing due soon (`resting`)."""
        if not resting:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = at
            # The other ants wait for this note.
            self._due = min(self._due, at + _SOON * self.heartbeat_s)

    def idle_since(self) -> float | None:
        """Return a time at which all ants were idle at once, according to their notes, or None."""
        own, all_idle = self._idle_since, self.colony.idle_since
        return all_idle if own is not None and all_idle is not None and own <= all_idle else None

    # --------------------------------------------------------------- the end

    def end_within(self, seconds: float) -> None:
        """From now on, wait for the store for at most `seconds` in all, because this ant is ending."""
        self._claims.end_within(seconds)

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Drop the claims on addresses and guests (`claimed`), then those on the ant's name and roles. The worker
        thread calls this method at the end of the crawl.
        """
        self._claims.drop(claimed, owner=self.owner, at=at)
        self._claims.drop({f"{ANT}{self.owner}": at, ROLE: at, COUNTING: at}, owner=self.owner, at=at)


Others = Membership | LoneAnt
"""Either kind of ant: one of several, or a lone ant."""


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
    """Create the `Membership` of one ant.

    Parameters
    ----------
    claims : claims of the shared store (`store.contract.Claims`)
    plans : whether there is anything to plan. If not, no ant takes the controller's role
    reaches : returns whether this ant can read the copies of the ant with this number; None: this ant stores none
    """
    term = Term(heartbeat_s, steady=steady)
    store.lives.before_loss(term.lapse)  # at once: the loop thread reads of the loss a batch later
    return Membership(
        owner,
        claims,
        heartbeat_s=heartbeat_s,
        term=term,
        heartbeats=Heartbeats(store, claims, owner=owner, lease_s=term.lease_s, reaches=reaches),
        load=CoreLoad(steady, cpu),
        start=start,
        plans=plans,
    )


def most_sites(mean: float, fewest: int) -> int:
    """Return how many sites an ant may have: somewhat more than the mean, or the mean if another ant has too
    few sites.
    """
    return ceil(mean) if _is_short(mean, fewest) else int(mean * (1.0 + UNEVEN)) + SPARE_SITES


def surplus(mine: int, mean: float, fewest: int) -> int:
    """Return how many sites an ant should give up. `fewest` is the smallest number of sites that any ant has."""
    if mine > mean * (1.0 + UNEVEN) + SPARE_SITES:
        return mine - int(mean)
    if _is_short(mean, fewest):
        return max(mine - ceil(mean), 0)
    return 0


def _is_short(mean: float, fewest: int) -> bool:
    """Return whether the ant with the fewest sites has so few that other ants must give up sites."""
    return fewest < mean * (1.0 - UNEVEN) - 0.5


class ControllerState(msgspec.Struct, frozen=True, array_like=True):
    """What the controller stores for all ants: the price of a fetch, and the number of the schedule plan (0 for no
    plan).
    """

    price: float | None = None
    plan: int = 0


class HeartbeatRequest(NamedTuple):
    """What one heartbeat sends to the store."""

    note: AntNote
    steady: float
    """Time at which the heartbeat began, on the steady clock."""
    leases: Sequence[SiteLease]
    claimed: Sequence[str]
    notes: Mapping[str, bytes]
    """The notes to store with the claims on the ant's name and roles, by name of the claim."""
    knows_plan: int
    loans: Sequence[Loan]
    """The loans to other ants that must be extended."""
    borrowed_sites: frozenset[str] | None
    """Sites whose slots this ant borrows, or None if ants do not lend slots."""


class HeartbeatResult(NamedTuple):
    """What one heartbeat read from the store."""

    request: HeartbeatRequest
    renewed: list[SiteLease]
    lost: list[SiteLease]
    """Leases of sites that other ants took over."""
    lost_claims: list[str]
    """Claims on addresses and guests that other ants have taken over."""
    colony: Colony
    """Sums of the counts in the notes of all running ants, including this one."""
    is_controller: bool
    controller: ControllerState | None
    """What the controller stored, if the controller is another ant."""
    plan: bytes | None
    """The published schedule plan, if this ant has an older one or none."""
    counts: bool
    """True if this ant computes the sums of the counts in the notes of all ants."""
    over: list[Loan]
    """Loans that were not extended, because the borrower has ended, the site was lost, or the loan has reached
    its end.
    """
    borrowed: list[BorrowedSlots]


class Heartbeats:
    """Carries out an ant's heartbeats in a separate thread.

    `reaches` returns whether this ant can read the copies of the ant with a given number. `reaches` is None if this ant
    stores no copies.
    """

    def __init__(
        self,
        store: FrontierStore,
        claims: Claims,
        *,
        owner: str,
        lease_s: float,
        reaches: Callable[[int], bool] | None,
    ) -> None:
        self._store = store
        self._claims = claims
        self._owner = owner
        self._lease_s = lease_s
        self._reaches = reaches
        self._ants = 0  # number of ants when the copies were last checked
        self._is_apart = False
        self._loans = LoanClaims(store, claims, owner=owner)

    def carry_out(self, request: HeartbeatRequest) -> HeartbeatResult:
        """Renew leases and claims, store this ant's notes, and read other ants' notes, in three to nine round trips.
        Errors of the store are raised.
        """
        claims, at, until = self._claims, request.note.at, request.note.at + self._lease_s
        renewed = self._store.sites.renew(request.leases, until=until)
        kept = {lease.site for lease in renewed}
        held = claims.claim(request.claimed, owner=self._owner, until=until, at=at)
        said = claims.claim(list(request.notes), owner=self._owner, until=until, at=at, notes=request.notes)
        roles = {claim.name: claim for claim in said}
        is_controller = ROLE in roles and roles[ROLE].owner == self._owner
        controller, plan = None, None
        if ROLE in roles and not is_controller and roles[ROLE].note:
            controller = msgspec.msgpack.decode(roles[ROLE].note, type=ControllerState)
            if controller.plan not in (0, request.knows_plan):
                plan = self._store.board.value(PLAN)
        counts = roles[COUNTING].owner == self._owner
        colony = self._colony(roles[COUNTING].note, at=at, until=until, counts=counts)
        over = self._loans.prolong(request.loans, kept, until=until, at=at)
        borrowed = [] if request.borrowed_sites is None else self._loans.borrowed(request.borrowed_sites, at=at)
        self._check_copies(colony.ants)
        return HeartbeatResult(
            request,
            renewed=renewed,
            lost=[lease for lease in request.leases if lease.site not in kept],
            lost_claims=[claim.name for claim in held if claim.owner != self._owner],
            colony=colony,
            is_controller=is_controller,
            controller=controller,
            plan=plan,
            counts=counts,
            over=over,
            borrowed=borrowed,
        )

    def _colony(self, note: bytes, *, at: float, until: float, counts: bool) -> Colony:
        """Return the sums of the counts in the notes of all ants. This ant adds up the notes itself if there are few
        ants or if it has the role `COUNTING`.
        """
        colony = msgspec.msgpack.decode(note, type=Colony)
        if counts or colony.ants <= FEW:
            colony = self._count(at)
        if counts:
            notes = {COUNTING: msgspec.msgpack.encode(colony)}
            self._claims.claim([COUNTING], owner=self._owner, until=until, at=at, notes=notes)
        return colony

    def _count(self, at: float) -> Colony:
        """Add up the notes of all ants, and remove claims that expired long ago."""
        alive = {}
        for claim in self._claims.claims("ant"):
            if claim.until > at:
                alive[claim.owner] = msgspec.msgpack.decode(claim.note, type=AntNote)
            else:
                strike_off(self._claims, claim, owner=self._owner, at=at)
        free = tuple(owner for owner, note in alive.items() if note.load < FREE and not note.lacks_room)[:FEW]
        return msgspec.structs.replace(Colony.of(list(alive.values())), free=free)

    def are_copies_apart(self) -> bool:
        """Return whether some ant has copies that this ant cannot read. Any thread may call this method."""
        return self._is_apart

    def _check_copies(self, ants: int) -> None:
        """If the number of ants has changed, check whether this ant can read the copies of all ants."""
        if self._reaches is not None and not self._is_apart and ants != self._ants:
            places = {int(claim.name.partition("/")[2]): claim.owner for claim in self._claims.claims("repository")}
            # An ant that claimed a number in a folder of this machine may not have created its own folder yet.
            here = {place for number, place in places.items() if self._reaches(number)}
            self._is_apart = not here.issuperset(places.values())
        self._ants = ants
