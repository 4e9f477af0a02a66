"""A site of the active list, as a state machine from activation to parking.

A site consists of its place among the addresses (`addresses`), its politeness (`politeness`), its robots.txt and
sitemaps (`site_files`), and its pages (`site_pages`). Methods of a site return the files that it needs from other sites
(`FileRequest`), and write work for the store into a batch.

- RESOLVING: the address of the host is awaited. `resolved` leads to ROBOTS, to OPEN if robots.txt is known, or to SHUT
  without an address.
- ROBOTS: robots.txt is awaited. `answered` leads to OPEN, or to SHUT without an answer to obey.
- OPEN: pages may be leased and fetched. `renew_robots` leads to ROBOTS. After a refill without result, the site is
  *empty* until new URLs, returned URLs, or `on_timer` at `wake_at`.
- SHUT: no page may be fetched. `on_timer` at `wake_at` leads to ROBOTS, but the site is usually parked before.
- LOST: another process took the site over. The site has left the list, and answers are dropped.

A site is *barred* if it has a private address or was given up. Pages of a barred site are still leased, but their
leases end without a request. A *guest* has no site lease: only files that other sites need are fetched from it. A
*borrowed* site is leased by another ant, which lends this ant some slots. From a borrowed site, an ant fetches pages,
but neither robots.txt nor sitemaps.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.batch import remembered
from webfountain.frontier.sites.addresses import Place
from webfountain.frontier.sites.hand import Hand
from webfountain.frontier.sites.politeness import SITE_ERRORS, SitePoliteness
from webfountain.frontier.sites.site_changes import SiteChanges
from webfountain.frontier.sites.site_files import DISALLOWED, FileRequest, SiteFiles
from webfountain.frontier.sites.site_pages import PRIVATE, SitePages
from webfountain.public_addresses import is_private_host
from webfountain.records import LOST_LIFE, SiteState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.addresses import AddressGroup
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.visit import Visit
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import FetchKind, FetchResult, Lease, PageRecord, SiteLease

__all__ = ["ActiveSite", "SiteStatistics", "State", "state_of"]

TRIES: Final = 5
"""If `SiteContext.patient` is False, a site is given up after this many requests in a row without an answer."""
_KEPT_S: Final = 5.0
"""If a site must be left alone for longer than this, in seconds, its state is stored at once."""
_TOO_SLOW_TO_READ: Final = "parse-time"


class State(Enum):
    """The state of an active site."""

    RESOLVING = "resolving"
    ROBOTS = "robots"
    OPEN = "open"
    SHUT = "shut"
    LOST = "lost"

    @property
    def is_preparing(self) -> bool:
        """True if the site waits until its address or robots.txt is known."""
        return self is State.RESOLVING or self is State.ROBOTS


class SiteStatistics(msgspec.Struct, frozen=True):
    """Counts and state of one active site."""

    state: State
    is_empty: bool
    """True if the store has no due page of the site."""
    barred: str | None
    address: str | None
    opens_at: float
    failures: int
    hand: int
    """Number of pages in the never-crawled and the recrawl queue of the site's hand."""
    immediate: int
    """Number of immediate URLs that may be requested. `held` counts the immediate URLs that wait for robots.txt or an
    address.
    """
    held: int
    files: int
    under_way: int


class ActiveSite:
    """One active site. `lease` is the site lease, or None for a guest.

    For a borrowed site, `borrowed_slots` is the number of slots, and `lease` is the site lease of the ant that lends
    them.
    """

    __slots__ = (
        "_context",
        "changes",
        "domain",
        "files",
        "hand",
        "is_borrowed",
        "lease",
        "name",
        "pages",
        "place",
        "standing",
        "state",
    )

    def __init__(
        self,
        name: str,
        state: SiteState,
        context: SiteContext,
        *,
        lease: SiteLease | None,
        borrowed_slots: int | None = None,
    ) -> None:
        self.name = name
        self.lease = lease
        self.is_borrowed = borrowed_slots is not None
        self._context = context
        self.state = State.RESOLVING
        rules, slots = context.collection.politeness, borrowed_slots if self.is_borrowed else context.pace.slots(name)
        self.standing = SitePoliteness(
            state, rules, rng=context.rng, metrics=context.metrics, slots=slots, pace=context.pace
        )
        self.domain = None if context.shares is None else context.shares.enter(name)
        """Registered domain of the site; None if domains are not limited."""
        self.changes = SiteChanges(state)
        self.hand = Hand(
            *(self.standing.gate, partial(_weights, context, self.changes), self.changes.chance, context.rng),
            size=context.hand, largest=context.largest_hand, domain=self.domain,
        )  # fmt: skip
        self.place = Place(name, self.hand, context.numbers)
        self.files = SiteFiles(state, context, self.place, self.hand)
        self.pages = SitePages(context, self.place, self.hand, self.files, self.changes)

    # -------------------------------------------------------- its needs

    def is_empty(self) -> bool:
        """Return whether the store has no due page of the site. A guest is always empty."""
        return self.lease is None or not self.pages.has_more

    def is_under_way(self) -> bool:
        """Return whether the site has an unfinished fetch, an unsettled page, an unread sitemap, a pending request for
        leases, or lent slots.
        """
        return self.pages.is_under_way() or self.standing.gate.in_flight > 0 or self.files.is_being_read()

    def must_renew_robots(self, at: float) -> bool:
        """Return whether robots.txt has expired and may be renewed now."""
        bound = not self._is_own() or self.pages.is_ordered or self.pages.barred is not None
        return not bound and self.state is State.OPEN and self.files.robots.is_outdated(at)

    def _is_own(self) -> bool:
        """Return whether the site is neither a guest nor borrowed."""
        return self.lease is not None and not self.is_borrowed

    def statistics(self) -> SiteStatistics:
        """Return the site's current counts and state."""
        hand, group = self.hand, self.place.group
        return SiteStatistics(
            state=self.state,
            is_empty=self.is_empty(),
            barred=self.pages.barred,
            address=None if group is None else group.address,
            opens_at=self.standing.gate.opens_at,
            failures=self.standing.failures,
            hand=hand.pages(),
            immediate=len(hand.urgent),
            held=len(hand.held),
            files=len(hand.files),
            under_way=self.pages.under_way,
        )

    # ------------------------------------------- events: its place and its lease

    def resolved(self, group: AddressGroup, batch: Batch) -> list[FileRequest]:
        """Begin work on a site whose address is now known. Fetch robots.txt, or bar the site if the address is
        private.
        """
        if not self._context.collection.network.allow_private and is_private_host(group.address):
            self.pages.bar(PRIVATE)
            return self.files.give_up(PRIVATE) + self._prepare(batch)
        return self._prepare(batch)

    def unreachable(self, error: str, batch: Batch) -> list[FileRequest]:
        """Record that the host has no address. The site waits for the next look-up, longer after each failure, or is
        given up if `SiteContext.patient` is False.
        """
        rests_until = self.standing.unreachable(error, batch.at)
        if self._context.patient:
            self.state = State.SHUT
            self.pages.wait_until(rests_until)
        else:
            self._give_up(error, batch)
        self._context.metrics.inc("ant/unreachable")
        self._context.metrics.inc(f"fetch/error/{error}")
        return self.files.give_up(error)

    def adopt(self, lease: SiteLease, batch: Batch) -> list[FileRequest]:
        """Turn a guest into an ordinary site with a site lease."""
        state = state_of(lease, self._context.collection.politeness, batch.at)
        self.lease = lease
        self.standing.join(state)
        self.files.restore(state)
        self.changes.restore(state)
        return [] if self.state.is_preparing else self._prepare(batch)

    def renew(self, lease: SiteLease) -> None:
        """Extend the site lease. If `lease` extends an earlier lease of the site, ignore it."""
        if self.lease is not None and self.lease.token == lease.token:
            self.lease = lease

    def lose(self) -> list[FileRequest]:
        """Drop all requests because another process took the site over. Return the files that were not fetched."""
        given_up = self.files.give_up("busy")
        self.hand.flush()
        self.state = State.LOST
        return given_up

    def keep(self, batch: Batch) -> None:
        """Save the state of the site with the batch."""
        if self.lease is not None and not self.is_borrowed:
            batch.remember(self.lease, self.remember(batch.at))

    def remember(self, at: float) -> SiteState:
        """Return the site's state, as it must be stored."""
        standing = self.standing
        known = SiteState(
            next_at=standing.next_at(at),
            failures=standing.failures,
            crawl_delay=standing.crawl_delay,
            error=standing.site_error,
        )
        return self.changes.stored(self.files.stored(known))

    # ------------------------------------------------------ events: its fetches

    def landed(self, fetched: FetchResult, group: AddressGroup, batch: Batch) -> bool:
        """Process the end of a fetch, and give its slots back to the gates of the site and of `group`.

        Return whether the site refused the request.
        """
        refused = self.standing.landed(fetched, group.gate)
        if fetched.fetch.kind != "page":
            self.pages.settled(1)
        elif refused and self.state is not State.LOST:
            self._count_silence(fetched, batch)
        return refused

    def answered(self, fetched: FetchResult, batch: Batch) -> list[FileRequest]:
        """Process an answer, possibly from another host, for this site's robots.txt or for one of its sitemaps."""
        if fetched.fetch.kind == "robots":
            requests = self._robots_answered(fetched, batch)
        else:
            requests = self.files.sitemap_answered(fetched, batch)
        self._count_silence(fetched, batch)
        return requests

    def finished(self, visit: Visit, batch: Batch) -> bool:
        """Settle an examined page. Return False if the page was fetched under an earlier lease of the site."""
        lease = visit.fetched.fetch.lease
        assert lease is not None
        if self.lease is None or lease.id.token != self.lease.token:
            return False
        context = self._context
        price, believed, fastest_s = context.follower.schedule.price, context.believed, context.fastest_s
        visit = self.changes.add(lease.record, visit, price=price, believed=believed, fastest_s=fastest_s)
        self.pages.settle(lease, visit, batch)
        if visit.record.error == _TOO_SLOW_TO_READ:
            self.standing.slow_page(batch.at)
        else:
            self.standing.ordinary_page()
        if batch.at + _KEPT_S < self.standing.gate.opens_at < inf:  # inf: the next request is already in flight
            self.keep(batch)
        return True

    def add_immediate(self, leases: Iterable[Lease], batch: Batch) -> None:
        """Let immediate URLs be fetched before all other pages of the site. Each URL waits until robots.txt is known,
        and is requested only if robots.txt allows it.
        """
        self.pages.add_immediate(leases)
        if self.state is State.ROBOTS:
            self.hand.hasten_files()
        if self.state is State.OPEN:
            self.pages.release_held(batch)

    def _count_silence(self, fetched: FetchResult, batch: Batch) -> None:
        """Give up a site that no longer answers or has no readable robots.txt, if `SiteContext.patient` is False."""
        if self._context.patient:
            return
        if fetched.error in SITE_ERRORS and self.standing.failures >= TRIES:
            self._give_up(fetched.error, batch)
        elif fetched.fetch.kind == "robots" and self.files.robots.failures >= TRIES:
            self._give_up(DISALLOWED, batch)

    def _give_up(self, error: str, batch: Batch) -> None:
        """Let all leased pages of the site fail, now and until the site is parked."""
        self.state = State.OPEN
        self.pages.give_up(error, batch)

    # ------------------------------------------------------- robots.txt and files

    def request_file(self, kind: FetchKind, url: str, batch: Batch) -> list[FileRequest]:
        """Queue the fetch of a file that this site has and another site needs.

        A sitemap waits until this site's robots.txt is known, and is fetched only if robots.txt allows it.
        """
        if self.pages.barred is not None or self.state is State.SHUT or self.is_borrowed:
            return [FileRequest(kind, url, self.name, self.pages.barred or "busy")]
        if kind == "robots":
            self.files.add(kind, url)
            return []
        self.files.add_waiting(url)
        return [] if self.state.is_preparing else self._prepare(batch)

    def renew_robots(self, batch: Batch) -> list[FileRequest]:
        """Give the leased pages back to the store, and fetch robots.txt again."""
        batch.release(self.hand.flush_pages())
        return self._prepare(batch)

    def on_timer(self, batch: Batch) -> list[FileRequest]:
        """Continue the site's work if the time `wake_at` has come."""
        if self.pages.wake_at > batch.at:
            return []
        if self.place.group is not None and (self.state is State.SHUT or self.pages.is_blocked(batch.at)):
            return self._prepare(batch)
        self.pages.refresh()
        return []

    def _prepare(self, batch: Batch) -> list[FileRequest]:
        """Wait if the site is blocked; else fetch robots.txt if it is needed, or open the site."""
        if self._context.blocked.by_site and self.pages.sleep_if_blocked(batch):
            self.state = State.SHUT
            return self.files.give_up("busy")
        # A guest that only serves robots.txt files to other sites needs no rules of its own.
        needs_robots = self._is_own() or (self.lease is None and self.files.has_waiting())
        if not self._context.obey_robots or self.pages.barred:
            self.files.robots.waive()
        elif needs_robots and self.files.begin_robots(batch.at):
            self.state = State.ROBOTS
            return []
        return self._open(batch)

    def _robots_answered(self, fetched: FetchResult, batch: Batch) -> list[FileRequest]:
        """Process an answer for robots.txt: follow a redirect, obey the rules, or send no requests for a while."""
        answer = self.files.robots.answered(fetched)
        if answer.hop is not None:
            return self.files.follow_robots(answer.hop)
        self._context.metrics.inc(f"robots/{answer.ruling}")
        if answer.ruling == "refuse":
            error = fetched.error or f"robots.txt: status {fetched.status}"
            rests_until = self.standing.without_robots(error, self.files.robots.failures, batch.at)
            self._context.pace.report(self.name, "robots.txt", rests_until - batch.at)
            self.state = State.SHUT
            self.pages.wait_until(rests_until)
            return []
        self.standing.obey(self.files.robots.crawl_delay, at=fetched.at)
        self.keep(batch)
        return self._open(batch)

    def _open(self, batch: Batch) -> list[FileRequest]:
        """Open the site because robots.txt is known: request sitemaps, check immediate URLs that waited, and lease
        pages.
        """
        self.state = State.OPEN
        if self.standing.crawl_delay:
            self._context.pace.report(self.name, "Crawl-delay", self.standing.delay_s())
        requests = self.files.open(batch, own=self._is_own() and not self.pages.barred)
        self.pages.open(batch)
        return requests


def _weights(context: SiteContext, changes: SiteChanges, new: PageRecord) -> Sequence[float]:
    """Return the weights of the never-crawled and the recrawl queue."""
    schedule = context.follower.schedule
    never, known = schedule.weights(context.clock.now())
    part = changes.part_of_share(new, price=schedule.price, believed=context.believed)
    return never * part, known


def state_of(lease: SiteLease, rules: PolitenessTable, at: float) -> SiteState:
    """Return the stored state of a site that was activated at `at`.

    If the process that crawled the site died, nobody knows when the site got its last request, and the next request
    waits for a full delay. After the store's server lost data, the previous process may send requests until its lease
    ends, and the full delay begins at that time.
    """
    state = remembered(lease.record)
    in_lost_life = lease.lost_by == LOST_LIFE
    if lease.lost_by is None or (state.next_at > at and not in_lost_life):
        return state
    delay = max(rules.min_delay, min(state.crawl_delay, rules.max_delay))
    next_at = max(state.next_at, lease.until + delay) if in_lost_life else at + delay
    return msgspec.structs.replace(state, next_at=next_at)
