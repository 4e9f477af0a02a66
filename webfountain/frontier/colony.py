"""Many ants on one store: who is alive, who may act until when, what they share out, and what they tell each other.

Life of an ant
--------------
1. It opens the shared store under a name of its own and *claims* ``ant/NAME`` for nearly two heartbeats. With that
   goes what the others must know of it: how many sites it has, what it counted, whether it has nothing to do. A few
   ants each read what all say; of many one does, by a claim on that role, and says beside it what it comes to: notes
   that each read would cost the server as much as the square of the ants' number.
2. It takes sites by *site leases* that last as long, and the addresses where they stand by claims of their own: only
   who has an address asks anybody there, so politeness by address needs no round trip for a fetch. A site whose
   address is another ant's is given back, and a letter tells that ant to take it: sites follow their address.
3. At each *heartbeat* all of it is renewed at once, beside the worker thread, so that no long batch costs a lease. What
   comes back is taken in by the loop: sites and addresses that others took over meanwhile are dropped.
4. Before each request it looks at its *term*: the time until which everything that it holds is its own, counted by a
   clock that goes on while the process is stopped. When that is over (the store does not answer, the process was
   stopped) nothing is sent any more and what is under way is cut; what had been leased goes back.
5. An ant that has many more sites than the others lets whole addresses go, which the others then find due. One whose
   core is busy *lends* slots of a site that may be asked several times at once to ants that have little to do; see
   below. One whose disk is short of room fetches nothing and lets all of its sites go; who counts all says so once.
6. One ant has the *controller's* role, again by a claim: it plans and says the price; what it says stands beside the
   claim, where all others read it at their heartbeat. When it is gone the next heartbeat of any other takes the role
   over; until then, and without one, the last plan stays in force.
7. It leaves: parks its sites with what it knows of them, lets its addresses go from when politeness allows, and its
   name. Killed, it leaves nothing: its claims and leases run out within two heartbeats, others take its sites over with
   all their URLs, and wait out the delay of each before they ask, for nobody knows when it was last asked.

Life of a loan
--------------
A very large site is split by its politeness: a gate has so many slots, each of which waits out its own delay, so ants
that use different slots keep it together as one alone does. Who has a site lends of it when its core is full, or when
slots stand open although the site's hand is as large as a hand can be: then the ways to the store are what takes time.

1. The holder takes some slots out of the gates of site and address (`ActiveSite.lend`), and claims ``loan/ANT/SITE``
   with its next heartbeats, each time after the site lease was renewed and for as long, while the borrower lives.
2. The borrower reads the loans that name it at its heartbeats, twice as often meanwhile. It makes a *part* of the site:
   leases and settles under the holder's token, so that whoever takes the site over fences both; never renews, parks
   or learns; asks neither robots.txt nor sitemaps. The loan's end bounds its term: what is under way then is cut.
3. It gives the slots back (`Returned`) when nothing is due there or the loan is not there any more, as soon as nothing
   of it is under way. Until that letter, or the last end that the holder claimed, the holder uses none of them, does
   not park the site and keeps its address.
4. Dead, or not heard of, the borrower is waited out; then the holder parks the site, as soon as nothing is under way,
   which returns what the other had leased. A dead holder renews nothing: the borrower stops before the lease ends.
5. At the first refusal or missing answer the borrower asks no more and says so at once; the holder backs off, recalls
   all loans of the site and lends none for a while. What the others still send is bounded: until the letter is read
   (half a second, and a batch) and, by other borrowers, until their next heartbeat, by their slots and delays.

Slots are lent only where settling a page is all there is to be kept of it: where no budget, no ranking and no fixed
size rule the choice, each of which has one writer for a site.

Here is all of this for one ant; the active list has the sites and addresses, the store the claims. The loop thread
makes a `Beat` when one is due (`Membership.beat`), a thread of its own carries it out against the store
(`carry_out`), and the loop thread takes in what came of it (`take_in`), after it has dropped what was lost: only then
does the term begin anew. Nothing here fetches or owns a site.
"""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import xxhash

from webfountain.frontier.sites.hand import Spent
from webfountain.store.contract import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.records import SiteLease, SiteRecord
    from webfountain.store.contract import Claim, Claims, FrontierStore

__all__ = [
    "ADDRESS",
    "GUEST",
    "LOAN",
    "ROLE",
    "AntNote",
    "Beat",
    "Beaten",
    "Borrowed",
    "Colony",
    "Loan",
    "Membership",
    "Ruling",
    "ants_of",
    "plan_number",
    "steady_clock",
]

LEASE_BEATS: Final = 1.9
"""A lease lasts so many heartbeats: one may fail, and the others have the rest of two to find a dead ant's sites."""
MARGIN: Final = 0.2
"""Share of a heartbeat that is left of the term when an ant stops sending: for clocks that differ, and for a request
on its way to the network."""
ROLE: Final = "role/controller"
COUNTING: Final = "role/counting"
"""The role of the ant that reads all notes where there are many, and says beside it what they come to."""
FEW: Final = 16
"""So many ants each read the notes of all, and hear of the end within a heartbeat; to be read by each, those of more
would cost the server as much as the square of their number."""
ADDRESS: Final = "address/"
GUEST: Final = "guest/"
"""How the claims begin of an address, and of a site that is asked for files without a site lease."""
LOAN: Final = "loan/"
LOAN_BEATS: Final = 120
"""A loan lasts so many heartbeats at most."""
_BUSY: Final = 0.7
_FREE: Final = 0.3
"""An ant that used a larger share of a core since its last heartbeat has too much to do; one with less has time."""
_UNUSED_S: Final = 0.05
"""A slot that stood open for so long, and longer than its delay, is one that its ant does not come to."""
_SOON: Final = 0.1
_BURIED_S: Final = 3600.0
"""An ant that was not heard of for so long is struck off the list."""


class AntNote(msgspec.Struct, frozen=True, array_like=True):
    """What an ant says of itself with each heartbeat."""

    at: float
    """UTC seconds, by its clock."""
    sites: int = 0
    in_flight: int = 0
    idle_since: float | None = None
    """Since when it has had nothing under way and nothing that comes due soon; None: it has."""
    counts: dict[str, float] = {}
    """Its metrics."""
    spent: Spent | None = None
    """What it fetched in the time period, where domains have shares of that."""
    load: float = 1.0
    """CPU seconds a second since the heartbeat before."""
    lacks_room: bool = False
    """Whether it fetches nothing, for want of room on its disk."""


class Loan(msgspec.Struct, frozen=True, array_like=True):
    """Slots of a site that its holder leaves to another ant: what stands beside the claim on ``loan/ANT/SITE``."""

    site: str
    borrower: str
    token: int
    """Of the holder's site lease."""
    address: str
    slots: int
    opens_at: float
    """No request before this time, UTC seconds."""
    ends_at: float
    """The holder renews it no longer than so."""

    @property
    def name(self) -> str:
        """Of its claim."""
        return f"{LOAN}{self.borrower}/{self.site}"


class Borrowed(NamedTuple):
    """A loan to this ant that is in force, and until when."""

    loan: Loan
    holder: str
    until: float
    record: SiteRecord | None
    """The site; None where it was known already, or is gone."""


class Colony(msgspec.Struct, frozen=True, array_like=True):
    """What the notes of all ants that are alive come to."""

    ants: int = 1
    sites: int = 0
    idle_since: float | None = None
    """A moment at which none of them had anything to do, UTC seconds; None where there was none."""
    spent: Spent | None = None
    free: tuple[str, ...] = ()
    """Ants that have little to do, a few of them."""
    short: int = 0
    """Ants that fetch nothing, for want of room on their disks."""

    @classmethod
    def of(cls, notes: Sequence[AntNote]) -> Colony:
        """What these come to."""
        latest = max((-inf if note.idle_since is None else note.idle_since for note in notes), default=-inf)
        idle = all(note.idle_since is not None and note.at >= latest for note in notes)
        spent = Spent.of(note.spent for note in notes if note.spent is not None)
        sites, short = sum(note.sites for note in notes), sum(note.lacks_room for note in notes)
        return cls(len(notes), sites, latest if idle and notes else None, spent, short=short)

    @property
    def takers(self) -> int:
        """Ants that share the sites out."""
        return max(self.ants - self.short, 1)


class Ruling(msgspec.Struct, frozen=True, array_like=True):
    """What the controller says to all: the price of a fetch, and which plan is in force (0: none)."""

    price: float | None = None
    plan: int = 0


class Beat(NamedTuple):
    """One heartbeat on its way to the store."""

    at: float
    steady: float
    """By the clock of the term: when it began."""
    leases: Sequence[SiteLease]
    claimed: Sequence[str]
    notes: Mapping[str, bytes]
    """What is to be read beside its name, and beside each role that it would have."""
    knows_plan: int
    spent: Spent | None
    """What it tells of the domains' shares."""
    loans: Sequence[Loan]
    """That are to last longer."""
    parts: frozenset[str] | None
    """Sites of which it borrows; None where nobody lends."""


class Beaten(NamedTuple):
    """What came of a heartbeat."""

    beat: Beat
    renewed: list[SiteLease]
    lost: list[SiteLease]
    """Those of sites that others took over."""
    lost_claims: list[str]
    """Addresses and guests that others have now."""
    colony: Colony
    """Of those that are alive, this one among them."""
    rules: bool
    ruling: Ruling | None
    """Another controller's word."""
    plan: bytes | None
    """The plan in force, where it is one that this ant does not know."""
    is_apart: bool
    """Whether some ant keeps its copies where this one cannot read them."""
    counts: bool
    """Whether it is this ant that says what all come to."""
    over: list[Loan]
    """Loans that were not prolonged: their borrower is gone, or the site."""
    borrowed: list[Borrowed]


def steady_clock() -> float:
    """Seconds of a clock that nobody sets and that goes on while the process is stopped and while the machine sleeps,
    where the system has one."""
    return time.clock_gettime(_BOOT) if _BOOT is not None else time.monotonic()


_BOOT: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class Membership:
    """One ant's place among the others.

    Parameters
    ----------
    claims : what the ants share out (`store.contract.Claims`)
    plans : whether there is anything to plan, and so a controller's role
    reaches : whether this ant can read the copies of the one with this number; None: it keeps none
    """

    def __init__(
        self,
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
    ) -> None:
        self.owner = owner
        self.lease_s = LEASE_BEATS * heartbeat_s
        """How long site leases and claims last, s."""
        self._store = store
        self._claims = claims
        self._heartbeat_s = heartbeat_s
        self._plans = plans
        self._reaches = reaches
        self._steady = steady
        self._cpu = cpu
        self._used = (steady(), cpu())  # at the last heartbeat
        self._load = 1.0
        self._due = start
        self._out = False
        self._ends = steady() + self.lease_s  # the term
        self._idle_since: float | None = None
        self.rules = False
        """Whether this ant is the controller."""
        self.counts = False
        """Whether this ant says what all come to."""
        self.colony = Colony()
        self._is_apart = False
        self._looked_at = 0  # how many ants there were
        self._sites = 0

    # ------------------------------------------------------------- the term

    def may_send(self) -> bool:
        """Whether all that this ant holds is its own for now: asked before each request."""
        return self._steady() < self._ends - MARGIN * self._heartbeat_s

    def hold_until(self, until: float, *, at: float) -> bool:
        """A lease was taken that ends at `until` (UTC; now is `at`): the term lasts no longer before the next
        heartbeat. False when it is over already: it came too late to be used."""
        ends = self._steady() + until - at
        if ends - MARGIN * self._heartbeat_s <= self._steady():
            return False
        self._ends = min(self._ends, ends)
        return True

    def bound(self, until: float, *, at: float) -> None:
        """What is under way must end by `until` (UTC; now is `at`), though that may be over: then it is cut."""
        self._ends = min(self._ends, self._steady() + until - at)

    # -------------------------------------------------------- the heartbeat

    def next_at(self) -> float:
        """When the next heartbeat is due, UTC seconds."""
        return self._due

    def is_due(self, at: float) -> bool:
        """Whether one is, and the last is not on its way."""
        return not self._out and at >= self._due

    def beat(
        self,
        at: float,
        *,
        leases: Sequence[SiteLease],
        claimed: Sequence[str],
        sites: int,
        in_flight: int,
        counts: Mapping[str, float],
        ruling: Ruling,
        spent: Spent | None = None,
        loans: Sequence[Loan] = (),
        parts: frozenset[str] | None = None,
        lacks_room: bool = False,
    ) -> Beat:
        """The heartbeat that `is_due`. `ruling` is what this ant says where it is the controller, and knows where it is
        not; `spent` is its part of the domains' shares; `loans` are those it gives, `parts` the sites of which it
        borrows, None where nobody lends; `lacks_room` says that its disk has no room for more."""
        self._out, self._sites = True, sites
        self._due = at + self._heartbeat_s * (0.5 if parts else 1.0)
        self._measure()
        note = AntNote(at, sites, in_flight, self._idle_since, dict(counts), spent, self._load, lacks_room)
        notes = {f"ant/{self.owner}": note, COUNTING: self.colony} | ({ROLE: ruling} if self._plans else {})
        packed = {name: msgspec.msgpack.encode(each) for name, each in notes.items()}
        return Beat(at, self._steady(), leases, claimed, packed, ruling.plan, spent, loans, parts)

    def _measure(self) -> None:
        """How much of a core was used since the last heartbeat."""
        (steady, cpu), self._used = self._used, (self._steady(), self._cpu())
        if (seconds := self._used[0] - steady) > 0.0:
            self._load = (self._used[1] - cpu) / seconds

    def carry_out(self, beat: Beat) -> Beaten:
        """Renew and tell; in a thread of its own. StoreError passes through. Three round trips, seven at most, two more
        where slots are lent."""
        claims, until = self._claims, beat.at + self.lease_s
        renewed = self._store.renew(beat.leases, until=until)
        kept = {lease.site for lease in renewed}
        held = claims.claim(beat.claimed, owner=self.owner, until=until, at=beat.at)
        said = claims.claim(list(beat.notes), owner=self.owner, until=until, at=beat.at, notes=beat.notes)
        roles = {claim.name: claim for claim in said}
        ruling, plan = None, None
        rules = ROLE in roles and roles[ROLE].owner == self.owner
        if ROLE in roles and not rules and roles[ROLE].note:
            ruling = msgspec.msgpack.decode(roles[ROLE].note, type=Ruling)
            if ruling.plan not in (0, beat.knows_plan):
                plan = self._store.value(PLAN)
        counting = roles[COUNTING]
        counts = counting.owner == self.owner
        colony = msgspec.msgpack.decode(counting.note, type=Colony)
        if counts or colony.ants <= FEW:
            colony = self._count(beat.at)
        if counts:
            notes = {COUNTING: msgspec.msgpack.encode(colony)}
            claims.claim([COUNTING], owner=self.owner, until=until, at=beat.at, notes=notes)
        over = self._prolong(beat, kept, until)
        borrowed = [] if beat.parts is None else self._borrowed(beat, beat.parts)
        lost = [lease for lease in beat.leases if lease.site not in kept]
        lost_claims = [claim.name for claim in held if claim.owner != self.owner]
        is_apart = self._is_apart or (colony.ants != self._looked_at and self._look_for_copies())
        return Beaten(beat, renewed, lost, lost_claims, colony, rules, ruling, plan, is_apart, counts, over, borrowed)

    def _prolong(self, beat: Beat, kept: set[str], until: float) -> list[Loan]:
        """Claim the loans of sites that are ours still for ants that live still; those that are over now."""
        if not beat.loans:
            return []
        lives = self._claims.holders([f"ant/{loan.borrower}" for loan in beat.loans], at=beat.at)
        given = [
            loan
            for loan, ant in zip(beat.loans, lives, strict=True)
            if ant is not None and loan.site in kept and loan.ends_at > beat.at
        ]
        notes = {loan.name: msgspec.msgpack.encode(loan) for loan in given}
        self._claims.claim(list(notes), owner=self.owner, until=until, at=beat.at, notes=notes)
        return [loan for loan in beat.loans if loan not in given]

    def _borrowed(self, beat: Beat, parts: frozenset[str]) -> list[Borrowed]:
        """What others lend this ant."""
        found = []
        for claim in self._claims.claims("loan"):
            if claim.until <= beat.at:
                self._bury(claim, beat.at)
            elif claim.name.startswith(f"{LOAN}{self.owner}/") and claim.owner:
                loan = msgspec.msgpack.decode(claim.note, type=Loan)
                record = None if loan.site in parts else self._store.site(loan.site)
                found.append(Borrowed(loan, claim.owner, claim.until, record))
        return found

    def _look_for_copies(self) -> bool:
        """Whether some ant keeps copies where this one cannot read them."""
        if self._reaches is None:
            return False
        places = {int(claim.name.partition("/")[2]): claim.owner for claim in self._claims.claims("repository")}
        # Who has claimed a number in a folder that is here may not have made its own yet.
        here = {place for number, place in places.items() if self._reaches(number)}
        return not here.issuperset(places.values())

    def _count(self, at: float) -> Colony:
        """Read the notes of all; who was not heard of for long is struck off."""
        alive = {}
        for claim in self._claims.claims("ant"):
            if claim.until > at:
                alive[claim.owner] = msgspec.msgpack.decode(claim.note, type=AntNote)
            else:
                self._bury(claim, at)
        free = tuple(owner for owner, note in alive.items() if note.load < _FREE and not note.lacks_room)[:FEW]
        return msgspec.structs.replace(Colony.of(list(alive.values())), free=free)

    def _bury(self, claim: Claim, at: float) -> None:
        """Strike a name off that ran out long ago."""
        if claim.until < at - _BURIED_S:
            self._claims.claim([claim.name], owner=self.owner, until=at, at=at)
            self._claims.drop({claim.name: at}, owner=self.owner, at=at)

    def take_in(self, beaten: Beaten) -> None:
        """The heartbeat is through, and what was lost is dropped: the term lasts from when it began."""
        self._out = False
        self._ends = beaten.beat.steady + self.lease_s
        self.rules = beaten.rules
        self.counts = beaten.counts
        self.colony = beaten.colony
        self._is_apart = beaten.is_apart
        self._looked_at = beaten.colony.ants

    def leave(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Sign off, and let what is claimed go, each from a time on; in the worker thread."""
        self._claims.drop(claimed, owner=self.owner, at=at)
        self._claims.drop({f"ant/{self.owner}": at, ROLE: at, COUNTING: at}, owner=self.owner, at=at)

    def end_within(self, seconds: float) -> None:
        """This ant ends: what is away then is waited for no longer."""
        self._claims.end_within(seconds)

    # ------------------------------------------------------------ the others

    def is_apart(self) -> bool:
        """Whether ants keep copies where not all can read them: then what tells a change goes with a page's record.

        Looked up when ants come or go. In any thread."""
        return self._is_apart

    def share(self) -> float:
        """Which part of the crawl's budget is this ant's: as many parts as it has sites, and one."""
        mine = self._sites + 1
        return mine / max(self.colony.sites + self.colony.ants, mine)

    def fair(self) -> float:
        """How many sites each ant would have if all had the same number."""
        return self.colony.sites / self.colony.takers

    def borrowers(self) -> tuple[str, ...]:
        """Other ants that could do some of this one's work."""
        return tuple(ant for ant in self.colony.free if ant != self.owner)

    def unused_s(self) -> float:
        """For how long nobody used the slots of sites that it should leave to others; -inf: all, for its core is full.

        Where its core has time and slots stand open, though their site always has more, it waits for the store.
        """
        return -inf if self._load > _BUSY else _UNUSED_S

    def loan_end(self, at: float) -> float:
        """Until when a loan that begins now may last."""
        return at + LOAN_BEATS * self._heartbeat_s

    def ends_soon(self, loan: Loan, *, at: float) -> bool:
        """Whether it is time to give a loan back."""
        return loan.ends_at < at + 2 * self.lease_s

    def rest(self, *, resting: bool, at: float) -> None:
        """Whether this ant has nothing under way and nothing that comes due soon."""
        if not resting:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = at
            # The others wait for this to be said.
            self._due = min(self._due, at + _SOON * self._heartbeat_s)

    def idle_since(self) -> float | None:
        """A moment at which every ant had nothing to do, as far as their notes tell; None where there was none."""
        own, all_idle = self._idle_since, self.colony.idle_since
        return all_idle if own is not None and all_idle is not None and own <= all_idle else None


def ants_of(claims: Claims, at: float) -> dict[str, AntNote]:
    """The ants that are alive `at`, by name, and what they said last."""
    return {
        claim.owner: msgspec.msgpack.decode(claim.note, type=AntNote)
        for claim in claims.claims("ant")
        if claim.until > at
    }


def plan_number(plan: bytes | None) -> int:
    """By which number a ruling names an encoded plan; 0 for none."""
    return 0 if plan is None else xxhash.xxh3_64_intdigest(plan) or 1
