"""The heartbeats of an ant: what they do in the store.

Place in the walk: when a heartbeat is due, the loop thread makes a `HeartbeatRequest` (`membership`). A separate thread
carries the request out, so that no lease expires during a long batch. Then the loop thread applies the
`HeartbeatResult`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.frontier.cluster.ant_notes import ANT, COUNTING, FREE, ROLE, AntNote, Colony, strike_off
from webfountain.frontier.cluster.loans import LoanClaims
from webfountain.store.contract import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.frontier.cluster.loans import BorrowedSlots, Loan
    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["FEW", "ControllerState", "CopyReach", "HeartbeatRequest", "HeartbeatResult", "Heartbeats"]

FEW: Final = 16
"""With at most this number of ants, each ant reads the notes of all ants, and so learns within one heartbeat that all
are idle. With more ants, the cost for the server would grow with the square of their number.
"""


class ControllerState(msgspec.Struct, frozen=True, array_like=True):
    """What the controller stores for all ants: the price of a fetch, and the number of the plan (0: none)."""

    price: float | None = None
    plan: int = 0


class HeartbeatRequest(NamedTuple):
    """One heartbeat on its way to the store."""

    note: AntNote
    """What this ant reports."""
    steady: float
    """Time at which the heartbeat began, by the clock of the term."""
    leases: Sequence[SiteLease]
    claimed: Sequence[str]
    notes: Mapping[str, bytes]
    """The notes to store, by the name of their claim: one for the ant itself, one for each role that it would take."""
    knows_plan: int
    loans: Sequence[Loan]
    """Loans to extend."""
    borrowed_sites: frozenset[str] | None
    """Sites of which the ant borrows slots; None if ants do not lend slots."""


class HeartbeatResult(NamedTuple):
    """The result of a heartbeat."""

    request: HeartbeatRequest
    renewed: list[SiteLease]
    lost: list[SiteLease]
    """Leases of sites that other ants took over."""
    lost_claims: list[str]
    """Claims on addresses and guests that other ants now hold."""
    colony: Colony
    """The sum of the notes of all living ants, including this one."""
    is_controller: bool
    controller: ControllerState | None
    """The state that the controller stored, if another ant is the controller."""
    plan: bytes | None
    """The current plan, if this ant does not have it yet."""
    counts: bool
    """True if this ant computes the sum of all notes."""
    over: list[Loan]
    """Loans that were not extended: the borrower or the site is gone, or the loan has ended."""
    borrowed: list[BorrowedSlots]


class Heartbeats:
    """Carries out an ant's heartbeats in a separate thread."""

    def __init__(self, store: FrontierStore, claims: Claims, *, owner: str, lease_s: float, copies: CopyReach) -> None:
        self._store = store
        self._claims = claims
        self._owner = owner
        self._lease_s = lease_s
        self._copies = copies
        self._loans = LoanClaims(store, claims, owner=owner)

    def carry_out(self, request: HeartbeatRequest) -> HeartbeatResult:
        """Renew leases and claims, store the notes, and read the notes of other ants. Errors of the store are raised.

        It takes three to seven round trips, and two more if slots are lent.
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
        self._copies.check(colony.ants)
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
        """Return the sum of all notes. This ant computes it if there are few ants or it has the role `COUNTING`.
        Otherwise it returns the sum that another ant has stored.
        """
        colony = msgspec.msgpack.decode(note, type=Colony)
        if counts or colony.ants <= FEW:
            colony = self._count(at)
        if counts:
            notes = {COUNTING: msgspec.msgpack.encode(colony)}
            self._claims.claim([COUNTING], owner=self._owner, until=until, at=at, notes=notes)
        return colony

    def _count(self, at: float) -> Colony:
        """Read the notes of all ants. Remove the claims of ants that expired long ago."""
        alive = {}
        for claim in self._claims.claims("ant"):
            if claim.until > at:
                alive[claim.owner] = msgspec.msgpack.decode(claim.note, type=AntNote)
            else:
                strike_off(self._claims, claim, owner=self._owner, at=at)
        free = tuple(owner for owner, note in alive.items() if note.load < FREE and not note.lacks_room)[:FEW]
        return msgspec.structs.replace(Colony.of(list(alive.values())), free=free)

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Drop the claims, each as of its own time, and then the claims of the ant's name and roles. It runs in the
        worker thread."""
        self._claims.drop(claimed, owner=self._owner, at=at)
        self._claims.drop({f"{ANT}{self._owner}": at, ROLE: at, COUNTING: at}, owner=self._owner, at=at)

    def end_within(self, seconds: float) -> None:
        """Limit the wait for the store to this many seconds, because the ant is ending."""
        self._claims.end_within(seconds)


class CopyReach:
    """The last check of whether this ant can read the copies of all other ants, with the number of ants at that time.

    `reaches` returns whether this ant can read the copies of the ant with a given number. It is None if this ant stores
    no copies.
    """

    def __init__(self, claims: Claims, reaches: Callable[[int], bool] | None) -> None:
        self._claims = claims
        self._reaches = reaches
        self._ants = 0
        self._is_apart = False

    def is_apart(self) -> bool:
        """Return whether the copies of some ant cannot be read here. Any thread may call this."""
        return self._is_apart

    def check(self, ants: int) -> None:
        """Check again if the number of ants has changed. After one check has found unreadable copies, the result stays
        the same. It runs in the heartbeat's thread.
        """
        if self._reaches is not None and not self._is_apart and ants != self._ants:
            places = {int(claim.name.partition("/")[2]): claim.owner for claim in self._claims.claims("repository")}
            # An ant that claimed a number in a folder of this machine may not have created its own folder yet.
            here = {place for number, place in places.items() if self._reaches(number)}
            self._is_apart = not here.issuperset(places.values())
        self._ants = ants
