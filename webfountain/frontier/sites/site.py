"""A site of the active list: a state machine that owns all that is known of it between `activate` and `park`.

Its parts have state of their own: its robots.txt (`SiteRobots`), its standing with us (`Standing`: gate, address,
failures), the slots that other ants have of it (`Loans`), the URLs leased for it (`Hand`, Figure 1 of Edwards 2001,
third tier: never-crawled and recrawl joined by a weight, files such as robots.txt and sitemaps before both, immediate
URLs before all). Nobody else writes them: the active list passes each event once, and takes back what the site cannot
do alone (`Errand`, a file on another host). What it has for the store goes into the batch that comes with the event.

========== ================================= =======================================================================
state      means                             left by
========== ================================= =======================================================================
RESOLVING  its host's address is looked up   `resolved`: ROBOTS, or OPEN when its robots.txt is known; SHUT without one
ROBOTS     its robots.txt is asked           `answered`: OPEN, or SHUT when it is not to be had
OPEN       pages may be asked, and leased    `dealt` with nothing: EMPTY; `renew_robots`: ROBOTS
EMPTY      the store has nothing due now     `refresh` (new URLs, URLs given back) or `ripen` at `wake_at`: OPEN
SHUT       no page may be asked              `ripen` at `wake_at`: ROBOTS; as a rule it is parked before
LOST       somebody took it over             nothing: it is off the list, and what of it lands is dropped
========== ================================= =======================================================================

A site that is *barred* (a private address, given up) stays OPEN or EMPTY: its pages are leased, and each ends unasked.
A *guest* has no site lease: it is asked for files that other sites named, leases no page and is never parked.
A *part* has that of another ant, which lent it some slots: it leases pages, asks no files, and is given back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webfountain import urls
from webfountain.core.change_rate import Prior
from webfountain.frontier.batch import Learned
from webfountain.frontier.colony import Loan
from webfountain.frontier.inbox import Returned
from webfountain.frontier.pages.examiner import acknowledged
from webfountain.frontier.planning.schedule import within_policy
from webfountain.frontier.sites import politeness
from webfountain.frontier.sites.hand import Hand
from webfountain.frontier.sites.politeness import Loans, SiteRobots, Standing, is_redirect
from webfountain.frontier.sites.sequencer import Polite
from webfountain.policy.judge import Origin
from webfountain.records import Fetch, Lease, SiteState
from webfountain.store.contract import Parked, Refill, recrawl_place
from webfountain.urls import is_private_host

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webfountain.clock import Clock
    from webfountain.formats.robots import RobotsRules
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.colony import Borrowed
    from webfountain.frontier.pages.examiner import Examiner, Visit
    from webfountain.frontier.planning.schedule import PlanFollower
    from webfountain.frontier.sites.hand import DomainShares
    from webfountain.frontier.sites.politeness import Group
    from webfountain.metrics import Metrics
    from webfountain.policy import PolitenessTable
    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetched, FetchKind, OutcomeKind, PageRecord, SiteLease, SiteRecord
    from webfountain.store.contract import Dealt

__all__ = ["ActiveSite", "Errand", "SiteContext", "SiteStatistics", "State", "remembered", "state_of"]

PRIOR_PERIODS: Final = 10.0
"""Believed mean change interval, in periods, of the pages of a site that nothing is known of."""
PRIOR_CHANGES: Final = 2.0
"""How many changes seen the collection's belief is worth against what the site's own pages showed."""
TRIES: Final = 5
"""Requests in a row without an answer, each after a longer back-off, until an impatient crawl gives a site up."""
RELOOK: Final = 0.02
"""Share of a period after which a site whose pages were not due after all is looked at again."""
MAX_SITEMAPS: Final = 100
"""Sitemaps of one site that are read; an index that names more is cut and counted."""
_HAIR_S: Final = 1e-3
"""A site is looked at this much after a page comes due: `at - interval` may round to before the page's last crawl."""
_KEPT_S: Final = 5.0
"""A site that must be left alone for longer is kept so in the store at once; a kill forgets less than this."""
_PRIVATE: Final = "private-address"
_NO_ROBOTS: Final = "robots.txt"
_BARRED: Final[dict[str, OutcomeKind]] = {_PRIVATE: "refused", _NO_ROBOTS: "refused_by_robots"}
"""How pages of a barred site end, by why it is; all others have failed."""


class State(Enum):
    """See the module's table."""

    RESOLVING = "resolving"
    ROBOTS = "robots"
    OPEN = "open"
    EMPTY = "empty"
    SHUT = "shut"
    LOST = "lost"


class Errand(NamedTuple):
    """A file that `asker` needs of another site: it passes that site's gates, and what came of it returns.

    With an `error` it comes back: whoever waits for the file must do without.
    """

    kind: FetchKind
    url: str
    asker: str
    error: str | None = None


class SiteStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot of one site."""

    state: State
    is_guest: bool
    barred: str | None
    address: str | None
    opens_at: float
    failures: int
    robots_failures: int
    hand: int
    """Leased pages in the hand, of the two queues."""
    immediate: int
    """Immediate fetches that are ready; `held` wait for robots.txt or an address."""
    held: int
    files: int
    under_way: int
    served: int


@dataclass(slots=True, frozen=True)
class SiteContext:
    """What all sites of a crawl share: its rules and its collaborators.

    `by_worth`: where there is a choice among sites the more important page goes first.
    `patient`: the pages of a site that cannot be reached wait until it can; else they have failed, for who yielded them
    waits for their end. `ignores_robots` says of another project's stored request whether robots.txt is not to rule
    it. `numbers` are those of the fetches. `believed` is the mean change interval of pages of which nothing is known.
    """

    collection: Collection
    judge: Judge
    examiner: Examiner
    follower: PlanFollower
    metrics: Metrics
    clock: Clock
    rng: random.Random
    numbers: Iterator[int]
    parse_robots: Callable[[bytes], RobotsRules]
    hand: int
    largest_hand: int
    believed: Prior
    patient: bool = True
    obey_robots: bool = True
    by_worth: bool = False
    ignores_robots: Callable[[bytes], bool] = lambda _: False
    shares: DomainShares | None = None

    def weights(self) -> Sequence[float]:
        """Weights of a site's never-crawled and recrawl queue, now."""
        return self.follower.schedule.weights(self.clock.now())


class ActiveSite:
    """One site, made when it is activated (`lease`) or named by another (None: a guest)."""

    __slots__ = (
        "_barred",
        "_changes",
        "_context",
        "_hand",
        "_later",
        "_lease",
        "_loans",
        "_ordered",
        "_refreshed",
        "_robots",
        "_served",
        "_sitemaps",
        "_standing",
        "_state",
        "_under_way",
        "_watched",
        "borrowed",
        "domain",
        "fallbacks",
        "group",
        "name",
        "sequencer",
        "wake_at",
    )

    def __init__(
        self,
        name: str,
        state: SiteState,
        context: SiteContext,
        *,
        lease: SiteLease | None,
        borrowed: Borrowed | None = None,
    ) -> None:
        """`borrowed`: it is a part, under the lease of its holder."""
        self.name = name
        self.borrowed = borrowed
        """What was lent of it to this ant; None: it is none of another's."""
        self._loans = Loans(state)
        self._context = context
        self._lease = lease
        self._state = State.RESOLVING
        self._barred: str | None = None
        self._standing = Standing(
            state,
            context.collection.politeness,
            rng=context.rng,
            metrics=context.metrics,
            slots=None if borrowed is None else borrowed.loan.slots,
        )
        self._robots = SiteRobots(state, context.parse_robots)
        self.domain = None if context.shares is None else context.shares.enter(name)
        """Its registered domain, where domains have shares."""
        self._hand = Hand(
            context.weights, context.rng, size=context.hand, largest=context.largest_hand, domain=self.domain
        )
        self._sitemaps = dict(state.sitemaps)
        self._later: list[str] = []  # sitemaps that others named, until robots.txt allows them
        self._ordered = False  # a refill is with the store
        self._refreshed = False  # the store has something since it was ordered, which the order may not find
        self._under_way = 0  # fetches that have not ended, and ends that are not settled
        self._served = 0
        self._changes = state.changes
        self._watched = state.watched
        self.group: Group | None = None
        """The sites at its address, of which it is one; None until its host is resolved."""
        self.fallbacks: tuple[str, ...] = ()
        """Other addresses of its host, in the order in which they are tried when that of `group` does not answer."""
        self.wake_at = inf
        """When something of it comes due by time alone, UTC seconds."""
        self.sequencer: Polite[Fetch] = Polite(self._hand.sequencer, self._standing.gate)
        """What is asked of it next, behind its gate."""

    # -------------------------------------------------------- what it needs

    @property
    def lease(self) -> SiteLease | None:
        """The right to crawl it; None: it is a guest."""
        return self._lease

    def is_hungry(self) -> bool:
        """Whether the hand runs low and the store may have more."""
        return self._state is State.OPEN and not self._ordered and self._hand.runs_low()

    def is_idle(self) -> bool:
        """Nothing to ask, nothing under way, nothing ordered."""
        busy = self._state is State.RESOLVING or self._state is State.ROBOTS
        return not (busy or self.is_under_way() or self._hand.backlog())

    def is_quiet(self) -> bool:
        """Idle, and no page of it is wanted before `wake_at`."""
        return (self._state is State.EMPTY or self._state is State.SHUT) and self.is_idle()

    def is_done(self, at: float, *, patience_s: float) -> bool:
        """Quiet for long enough that leaving pays; a guest's gate is remembered until it opens."""
        if not self.is_quiet():
            return False
        if self._lease is None:
            return self._standing.opens_at() <= at
        return self._state is State.SHUT or self.wake_at > at + patience_s

    def is_bound(self) -> bool:
        """Whether something is under way that the site must wait for."""
        waits = self._state is State.RESOLVING or self._state is State.ROBOTS
        return waits or self.is_under_way()

    def is_under_way(self) -> bool:
        """Whether a fetch of it has not ended, an end or an order is with the store, or another ant has slots of it."""
        return bool(self._under_way or self._ordered or self._loans)

    def needs(self, until: float) -> tuple[bool, bool, bool]:
        """After an event: whether it is hungry, whether it is quiet, whether it must be left alone until a time."""
        return self.is_hungry(), self.is_quiet(), self._standing.rests_until > until

    def opens_at(self) -> float:
        """From when on it may be asked again; inf while it is asked."""
        return self._standing.opens_at()

    def has_pages(self) -> bool:
        """Whether pages of it are leased, to be asked or asked already."""
        return bool(self._under_way or self._hand.pages())

    def is_busy(self, until: float) -> bool:
        """Whether it is asked now, or may be before a time: neither its domain nor politeness is in the way."""
        is_capped = self.domain is not None and not self.domain.is_open
        return bool(self._under_way) or (not is_capped and self._standing.opens_at() <= until)

    def free_at(self, at: float) -> float:
        """From when on another process may ask it, if this one ends `at`."""
        return self._standing.next_at(at)

    def has_served(self, quantum: int) -> bool:
        """Whether it gave so many fetches that others may have its place."""
        return self._served >= quantum

    def is_starved(self) -> bool:
        """Whether the store had fewer known pages due than the hand has room for."""
        return self._hand.is_short

    def has_before(self, until: float) -> bool:
        """Whether something of it may be asked before a time."""
        active = self._state is not State.EMPTY and self._state is not State.SHUT
        return active or self._ordered or bool(self._loans) or self.sequencer.wake_at() <= until

    def must_renew_robots(self, at: float) -> bool:
        """Whether its robots.txt has lived its time; with a refill out it must wait for that."""
        bound = self._lease is None or self._ordered or self._barred is not None or self.borrowed is not None
        return not bound and (self._state is State.OPEN or self._state is State.EMPTY) and self._robots.is_outdated(at)

    def is_lost(self) -> bool:
        """Whether somebody took it over."""
        return self._state is State.LOST

    def is_asking(self, url: str) -> bool:
        """Whether it waits for the answer to this URL as its robots.txt."""
        return self._robots.asking == url

    def statistics(self) -> SiteStatistics:
        """A frozen snapshot."""
        hand = self._hand
        return SiteStatistics(
            state=self._state,
            is_guest=self._lease is None,
            barred=self._barred,
            address=None if self.group is None else self.group.address,
            opens_at=self._standing.opens_at(),
            failures=self._standing.failures,
            robots_failures=self._robots.failures,
            hand=hand.pages(),
            immediate=hand.urgent.backlog(),
            held=len(hand.held),
            files=hand.files.backlog(),
            under_way=self._under_way,
            served=self._served,
        )

    def prior(self) -> Prior:
        """Mean change interval of its pages so far, drawn towards the collection's belief where little was seen."""
        believed_s = self._context.believed.interval
        return Prior((self._watched + PRIOR_CHANGES * believed_s) / (self._changes + PRIOR_CHANGES))

    # ------------------------------------------------------- events: its place

    def moved(self, group: Group, fallbacks: tuple[str, ...]) -> None:
        """It stands at another address of its host from now on."""
        self.group, self.fallbacks = group, fallbacks

    def resolved(self, group: Group, fallbacks: tuple[str, ...], batch: Batch) -> list[Errand]:
        """Its host has an address, or is one: bar it when that is private, else see to its robots.txt."""
        self.group, self.fallbacks = group, fallbacks
        if not self._context.collection.network.allow_private and is_private_host(group.address):
            self._barred = _PRIVATE
            return self.give_files_up(_PRIVATE) + self._prepare(batch)
        return self._prepare(batch)

    def unreachable(self, error: str, batch: Batch) -> list[Errand]:
        """Its host has no address: it waits, longer each time, or its pages have failed."""
        rests_until = self._standing.unreachable(batch.at)
        if self._context.patient:
            self._shut(rests_until)
        else:
            self._give_up(error, batch)
        self._context.metrics.inc("ant/unreachable")
        self._context.metrics.inc(f"fetch/error/{error}")
        return self.give_files_up(error)

    def adopt(self, lease: SiteLease, batch: Batch) -> list[Errand]:
        """A guest becomes a site of our own."""
        state = state_of(lease, self._context.collection.politeness, batch.at)
        self._lease = lease
        self._standing.join(state)
        self._sitemaps |= dict(state.sitemaps)
        self._changes, self._watched = state.changes, state.watched
        if self._robots.asked_at is None and self._robots.asking is None:
            self._robots = SiteRobots(state, self._context.parse_robots)
        return [] if self._state is State.RESOLVING or self._state is State.ROBOTS else self._prepare(batch)

    def renewed(self, lease: SiteLease) -> None:
        """Its lease lasts longer."""
        if self._lease is not None and self._lease.token == lease.token:
            self._lease = lease

    def leave(self, due: float, batch: Batch) -> list[Errand]:
        """It leaves the active list, to come back at `due`; what others need of it they must do without."""
        given_up = self.give_files_up("busy")
        if self.borrowed is not None:
            batch.release(self._hand.flush())
            self._write(batch, next_at=self._standing.next_at(batch.at), over=True)
        elif self._lease is not None:
            batch.release(self._hand.flush())
            batch.park(Parked(self._lease, max(due, self._standing.next_at(batch.at)), self._remember(batch.at)))
        return given_up

    def lose(self) -> list[Errand]:
        """Somebody took it over: it holds nothing any more, and what lands has no effect."""
        given_up = self.give_files_up("busy")
        self._hand.flush()
        self._state = State.LOST
        return given_up

    def give_files_up(self, error: str) -> list[Errand]:
        """The files that were not asked, its own and those that others need, are not to be had now."""
        waiting = [(fetch.kind, fetch.url) for fetch in self._hand.take_files()]
        waiting += [("sitemap", url) for url in self._later]
        self._later.clear()
        for _, url in waiting:
            self._sitemaps.pop(url, None)  # named, not read
        return [Errand(kind, url, self.name, error) for kind, url in waiting]

    def _keep(self, batch: Batch) -> None:
        """What was learned of it must outlive a kill."""
        if self._lease is not None and self.borrowed is None:
            batch.remember(self._lease, self._remember(batch.at))

    def _remember(self, at: float) -> SiteState:
        """What must outlive the visit."""
        body, asked_at, is_known, failures = self._robots.remember()
        return SiteState(
            next_at=self._standing.next_at(at),
            failures=self._standing.failures,
            robots=body,
            robots_at=asked_at,
            robots_ok=is_known,
            robots_failures=failures,
            crawl_delay=self._standing.crawl_delay,
            sitemaps=tuple(self._sitemaps.items()),
            changes=self._changes,
            watched=self._watched,
        )

    # ------------------------------------------- slots lent to and by other ants

    def spare_slots(self, at: float, *, unused_s: float) -> int:
        """How many slots it could lend that nobody used for so long (-inf: any), one stays.

        0 where little waits, or another site shares its address.
        """
        group = self.group
        if group is None or len(group.sites) > 1 or self.fallbacks or group.is_lent or group.is_leaving:
            return 0
        is_well = self._state is State.OPEN and self._barred is None and group.is_ours and self._lease is not None
        if not is_well or not self._hand.is_deep() or self.lacks_robots(at):
            return 0
        return self._loans.spare(self._standing, group, at, unused_s=unused_s)

    def lend(self, borrower: str, slots: int, *, until: float, ends_at: float) -> None:
        """Leave so many of its slots to another ant until a time, which `loans` prolongs, `ends_at` at most."""
        assert self._lease is not None
        assert self.group is not None
        opens_at = max(gate.lend(slots, until=until) for gate in (self._standing.gate, self.group.gate))
        loan = Loan(self.name, borrower, self._lease.token, self.group.address, slots, opens_at, ends_at)
        self._loans.give(loan, until)

    def lends_to(self, borrower: str) -> bool:
        """Whether that ant has slots of it."""
        return self._loans.of(borrower) is not None

    def loans(self, until: float) -> list[Loan]:
        """The loans that are in force and are to last until a time."""
        group = self.group
        if not self._loans or group is None or group.is_leaving:
            return []
        lent = self._loans.prolonged(until)
        if lent:
            self._standing.gate.prolong(until)
            group.gate.prolong(until)
        return lent

    def loan_over(self, loan: Loan) -> None:
        """It is not prolonged any more."""
        self._loans.end(loan)

    def write_off(self, at: float) -> bool:
        """Take the slots back of which the term is over and the borrower was not heard of: whether there were any.

        What it had leased returns when the site is parked.
        """
        lost = self._loans.overdue(at)
        for loan in lost:
            self._take_back(loan, at + self._standing.delay_s())
        return bool(lost)

    def returned(self, letter: Returned, batch: Batch) -> None:
        """A borrower gives its slots back, or was refused: all loans are recalled then, and none given for a while."""
        loan = self._loans.of(letter.borrower)
        if loan is None or letter.token != loan.token:
            return
        if letter.failures:
            self._standing.join(SiteState(next_at=letter.next_at, failures=letter.failures))
            self._recall(batch)
            self._keep(batch)
        if letter.over:
            self._take_back(loan, letter.next_at)
            batch.freed[loan.name] = batch.at
        self.refresh()

    def quit(self, fetched: Fetched, batch: Batch) -> None:
        """The site refused this part of it: the holder is to know at once."""
        batch.release(self._hand.flush())
        self._write(batch, next_at=max(self._standing.rests_until, fetched.at), over=False)

    def _write(self, batch: Batch, *, next_at: float, over: bool) -> None:
        assert self.borrowed is not None
        loan = self.borrowed.loan
        letter = Returned(self.name, loan.borrower, loan.token, next_at, self._standing.failures, over)
        batch.letters.append((self.borrowed.holder, letter))

    def prolonged(self, borrowed: Borrowed) -> None:
        """This part of it may be asked for longer."""
        self.borrowed = borrowed

    def _recall(self, batch: Batch) -> None:
        """Loans last no longer than they do, and the borrowers find at their next heartbeat that they are gone."""
        for loan in self._loans.recall(max(self._standing.rests_until, batch.at)):
            batch.freed[loan.name] = batch.at

    def _take_back(self, loan: Loan, open_at: float) -> None:
        assert self.group is not None
        self._loans.take_back(loan, self._standing, self.group, open_at)

    def lacks_robots(self, at: float) -> bool:
        """Whether its robots.txt must be asked before any page of it."""
        return self._context.obey_robots and self._robots.is_needed(at)

    # ------------------------------------------------------ events: its fetches

    def sent(self) -> None:
        """A fetch of it went out."""
        self._under_way += 1
        self._served += 1

    def unasked(self, group: Group, at: float) -> None:
        """A fetch of it that went out did not take place; its page is still to end."""
        self._standing.unasked(group, at)

    def landed(self, fetched: Fetched, group: Group, batch: Batch) -> bool:
        """A fetch of it, let out by `group`, ended, however: the gates open again when politeness says.

        Returns whether that was all: a page that the site answered as sites do.
        """
        refused = self._standing.landed(fetched, group)
        if refused and self._loans:
            self._recall(batch)
        if fetched.fetch.kind != "page":
            self._under_way -= 1
            return False
        if refused and self._state is not State.LOST:
            self._count_silence(fetched, batch)
        return not refused

    def answered(self, fetched: Fetched, batch: Batch) -> list[Errand]:
        """Its robots.txt or a sitemap that it named has been fetched, from wherever."""
        if fetched.fetch.kind == "robots":
            errands = self._robots_answered(fetched, batch)
        else:
            errands = self._sitemap_answered(fetched, batch)
        self._count_silence(fetched, batch)
        return errands

    def finished(self, visit: Visit, batch: Batch) -> bool:
        """A page was examined: it is to be settled. False: it was leased under another site lease than the present."""
        lease = visit.fetched.fetch.lease
        assert lease is not None
        if self._lease is None or lease.id.token != self._lease.token:
            return False
        if visit.record.checks > lease.record.checks:
            self._changes += visit.kind == "changed"
            self._watched += visit.watched
        context = self._context
        if context.judge.bounds_by_policy():
            revisit = context.judge.policy(visit.record.policy).revisit
            record = within_policy(visit.record, revisit, context.follower.schedule, site=self.name, at=batch.at)
            visit = visit if record is visit.record else replace(visit, record=record)
        self._note_due(visit.record, batch.at)
        batch.settle(lease, visit.outcome, visit)
        if self._standing.opens_at() > batch.at + _KEPT_S:
            self._keep(batch)
        return True

    def settled(self, many: int) -> None:
        """So many of its ends are in the store."""
        self._under_way -= many

    def _count_silence(self, fetched: Fetched, batch: Batch) -> None:
        """An impatient crawl gives a site up that answers no more, or that has no robots.txt to show."""
        if self._context.patient:
            return
        if fetched.error in politeness.SITE_ERRORS and self._standing.failures >= TRIES:
            self._give_up(fetched.error, batch)
        elif fetched.fetch.kind == "robots" and self._robots.failures >= TRIES:
            self._give_up(_NO_ROBOTS, batch)

    def _give_up(self, error: str, batch: Batch) -> None:
        """What is known of it has failed; when it is active again it is tried again."""
        self._barred = error
        self._state = State.OPEN
        for fetch in self._hand.take_pages():
            self._may_ask(fetch, batch)
        self._let_go(batch)

    # -------------------------------------------------- robots.txt and sitemaps

    def visit(self, kind: FetchKind, url: str, batch: Batch) -> list[Errand]:
        """Another site needs a file of this one.

        A sitemap obeys this site's robots.txt, which may have to be asked first; a robots.txt obeys none.
        """
        if self._barred is not None or self._state is State.SHUT or self.borrowed is not None:
            return [Errand(kind, url, self.name, self._barred or "busy")]
        if kind == "robots":
            self._fetch_file(kind, url)
            return []
        self._later.append(url)
        if self._state is State.RESOLVING or self._state is State.ROBOTS:
            return []
        return self._prepare(batch)

    def renew_robots(self, batch: Batch) -> list[Errand]:
        """Its robots.txt has lived its time: what is in the hand must wait for the new one, in the store."""
        batch.release(self._hand.flush_pages())
        return self._prepare(batch)

    def _prepare(self, batch: Batch) -> list[Errand]:
        """Make ready for its pages: with known rules at once, else after its robots.txt."""
        context = self._context
        if not context.obey_robots or self._barred:
            self._robots.waive()
        elif self._needs_robots() and (url := self._robots.begin(self.name, batch.at)) is not None:
            self._state = State.ROBOTS
            self._hand.add_robots(self._fetch("robots", url))
            return []
        return self._open(batch)

    def _needs_robots(self) -> bool:
        """A guest that is only asked for other sites' robots.txt needs none of its own."""
        return self.borrowed is None and (self._lease is not None or bool(self._later))

    def _ask_robots(self, url: str) -> list[Errand]:
        if urls.site_of(url) != self.name:
            return [Errand("robots", url, self.name)]
        self._hand.add_robots(self._fetch("robots", url))
        return []

    def _robots_answered(self, fetched: Fetched, batch: Batch) -> list[Errand]:
        """Follow, obey or refuse."""
        answer = self._robots.answered(fetched)
        if answer.hop is not None:
            return self._ask_robots(answer.hop)
        self._context.metrics.inc(f"robots/{answer.ruling}")
        if answer.ruling == "refuse":
            rests_until = batch.at + self._standing.back_off_s(self._robots.failures)
            self._standing.hold(rests_until)  # also when an immediate URL makes the site active before
            self._shut(rests_until)
            return []
        self._standing.obey(self._robots.crawl_delay, at=fetched.at)
        self._keep(batch)
        return self._open(batch)

    def _shut(self, until: float) -> None:
        self._state = State.SHUT
        self.wake_at = until

    def _open(self, batch: Batch) -> list[Errand]:
        """Rules are known: sitemaps are sent for, what waited goes on, leases may be ordered."""
        self._state = State.OPEN if self._lease is not None else State.EMPTY
        errands: list[Errand] = []
        is_own = self._lease is not None and self.borrowed is None
        if is_own and self._context.collection.discovery.sitemaps and not self._barred:
            errands = self.name_sitemaps(self._robots.sitemaps, batch)
        later, self._later = self._later, []
        for url in later:
            if self._context.obey_robots and not self._robots.allows(url):
                errands.append(Errand("sitemap", url, self.name, _NO_ROBOTS))
            else:
                self._fetch_file("sitemap", url)
        self._let_go(batch)
        return errands

    def _fetch_file(self, kind: FetchKind, url: str) -> None:
        self._hand.files.load([self._fetch(kind, url)])

    def name_sitemaps(self, found: Iterable[str], batch: Batch) -> list[Errand]:
        """Fetch those sitemaps that were not read within a period, newly named ones at once."""
        metrics, errands = self._context.metrics, []
        for name in found:
            url = urls.join(self.name + "/", name)
            if url is None or not self._context.judge.is_in_scope(urls.site_of(url)):
                metrics.inc("sitemap/out_of_scope")
            elif url not in self._sitemaps and len(self._sitemaps) >= MAX_SITEMAPS:
                metrics.inc("sitemap/too_many")
            elif batch.at - self._sitemaps.get(url, -inf) >= self._context.collection.cycle.period_s:
                self._sitemaps[url] = batch.at
                metrics.inc("sitemap/fetched")
                if urls.site_of(url) == self.name:
                    self._fetch_file("sitemap", url)
                else:
                    errands.append(Errand("sitemap", url, self.name))
        return errands

    def _sitemap_answered(self, fetched: Fetched, batch: Batch) -> list[Errand]:
        if fetched.status == 200:
            batch.read_sitemap(fetched, of=self.name)
            return []
        location = fetched.header("location") if is_redirect(fetched.status) else None
        if location is not None and (target := urls.join(fetched.fetch.url, location)) is not None:
            return self.name_sitemaps([target], batch)
        self._context.metrics.inc("sitemap/failed")
        return []

    # ------------------------------------------------------------- its pages

    def refill(self, batch: Batch) -> None:
        """Order leases for a hungry site; it is ordered for once until it is dealt."""
        assert self._lease is not None
        self._ordered, self._refreshed = True, False
        self.wake_at = inf  # learned anew: from the deal, and from what is settled meanwhile
        never, recrawl = self._hand.room()
        horizon = self._context.follower.schedule.horizon(self.name, batch.at)
        batch.refill(Refill(self._lease, never_crawled=never, recrawl=recrawl, horizon=horizon))

    def hurried(self, leases: Iterable[Lease], batch: Batch) -> None:
        """Immediate URLs go first of all, once robots.txt is known and if it allows them."""
        self._hand.hold(map(self._page, leases))
        if self._state is State.ROBOTS:
            self._hand.hasten_files()
        self._let_go(batch)

    def dealt(self, dealt: Dealt, batch: Batch) -> None:
        """The leases that were ordered came; what policy or robots.txt refuse now ends at once."""
        never, recrawl = (
            [fetch for fetch in map(self._page, leases) if self._may_ask(fetch, batch)]
            for leases in (dealt.never_crawled, dealt.recrawl)
        )
        # What was due and was not dealt (the hand was full, a horizon is used for a while) is looked at again soon.
        soonest = batch.at + RELOOK * self._context.collection.cycle.period_s
        for due in self._context.follower.schedule.due_times(self.name, dealt.lanes, batch.at):
            self._wake_sooner(due if due > batch.at else soonest)
        self._ordered = False
        full = bool(dealt.never_crawled or dealt.recrawl)
        self._hand.deal(never, recrawl, full=full)
        if not full and self._state is State.OPEN and not self._refreshed:
            self._state = State.EMPTY

    def refresh(self) -> None:
        """The store has something for it again: new URLs, or some that were given back."""
        if self._state is State.EMPTY and self._lease is not None:
            self._state = State.OPEN
        self._refreshed = True

    def recall(self, batch: Batch) -> None:
        """Some pages of it go before all others: the known ones in its hand are given back."""
        batch.release(self._hand.flush_recrawl())
        self.refresh()

    def judge_again(self, batch: Batch) -> None:
        """The policy was edited: what is in the hand goes back, and is judged when it is leased again."""
        batch.release(self._hand.flush())
        self.refresh()

    def outrank(self, importance: float, batch: Batch) -> None:
        """A request of this importance was offered: if it goes before some that are leased, these are given back."""
        if outranked := self._hand.flush_outranked(importance):
            batch.release(outranked)
            self.refresh()

    def ripen(self, batch: Batch) -> list[Errand]:
        """`wake_at` has come."""
        if self.wake_at > batch.at:
            return []
        if self._state is State.SHUT and self.group is not None:
            return self._prepare(batch)
        self.refresh()
        return []

    def _let_go(self, batch: Batch) -> None:
        if self._state is State.OPEN or self._state is State.EMPTY:
            for fetch in self._hand.take_held():
                if self._may_ask(fetch, batch):
                    self._hand.urgent.load([fetch])

    def _may_ask(self, fetch: Fetch, batch: Batch) -> bool:
        """Whether a leased page may be fetched; if not it is settled as refused, or as failed."""
        assert fetch.lease is not None
        record = fetch.lease.record
        kind, error = self._objection(record)
        if kind is None:
            return True
        self._under_way += 1
        if kind == "failed":
            outcome = acknowledged(fetch.lease, status=None, error=error, at=batch.at)
        else:
            outcome = self._context.examiner.refused(fetch.lease, kind, error, at=batch.at)
        self._note_due(outcome.record, batch.at)
        batch.refuse(fetch.lease, outcome)
        self._context.metrics.inc(f"outcome/{kind}")
        return False

    def _objection(self, record: PageRecord) -> tuple[OutcomeKind | None, str]:
        if self._barred is not None:
            return _BARRED.get(self._barred, "failed"), self._barred
        context = self._context
        if record.request is None:
            [verdict] = context.judge.judge([record.url], Origin("queued", record.depth, record.policy))
            if verdict.reason is not None:
                return "refused", verdict.reason
        if not context.obey_robots or self._robots.allows(record.url):
            return None, ""
        if record.request is not None and context.ignores_robots(record.request):
            return None, ""
        return "refused_by_robots", _NO_ROBOTS

    def _note_due(self, record: PageRecord, at: float) -> None:
        """When a page comes due once this record is settled."""
        [due] = self._context.follower.schedule.due_times(self.name, [recrawl_place(record)], at)
        self._wake_sooner(due)

    def _wake_sooner(self, due: float) -> None:
        self.wake_at = min(self.wake_at, due + _HAIR_S)

    def _page(self, lease: Lease) -> Fetch:
        """The request for a leased page, conditional when our copy has validators."""
        record = lease.record
        has_copy = record.state == "crawled" and record.digest is not None
        return self._fetch(
            "page",
            record.url,
            lease=lease,
            etag=record.etag if has_copy else None,
            last_modified=record.last_modified if has_copy else None,
        )

    def _fetch(self, kind: FetchKind, url: str, **more: Any) -> Fetch:
        address = None if self.group is None else self.group.address
        return Fetch(next(self._context.numbers), kind, url, self.name, address, fallbacks=self.fallbacks, **more)


def state_of(lease: SiteLease, rules: PolitenessTable, at: float) -> SiteState:
    """What is remembered of a site that was activated `at`.

    Of one that another lost nobody knows when it was last asked, unless it was not to be asked until now: its delay is
    waited out. Who takes it over remembers that at once, so that it does not begin anew with each that dies.
    """
    state = remembered(lease.record)
    if lease.lost_by is None or state.next_at > at:
        return state
    delay = max(rules.min_delay, min(state.crawl_delay, rules.max_delay))
    return msgspec.structs.replace(state, next_at=at + delay)


def remembered(record: SiteRecord) -> SiteState:
    """What is remembered of a site: when it was parked, or since, if it was never parked again (`learned`)."""
    learned = Learned.of(record).state
    return record.state if learned is None else max(record.state, learned, key=lambda state: state.next_at)
