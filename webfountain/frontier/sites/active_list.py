"""The active list: the sites that this process crawls now, whose turn it is, what they need next, and who leaves.

Each event of the crawl comes here once and goes to its site (`site`); what a site cannot do alone is done here: a file
that it needs of another host (`Errand`) passes that host's gates and its robots.txt, for the request goes to the site
there, active or made a guest. Where sites stand and who is polite to ask now is kept by `politeness`. Nothing here
touches store, disk or network: what the store must do is written into the batch that comes with the event. All of it
is cheap enough for the loop thread: O(log sites) a fetch.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.resemblance import HOT
from webfountain.frontier.colony import ADDRESS, GUEST
from webfountain.frontier.inbox import Take
from webfountain.frontier.sites.politeness import Addresses
from webfountain.frontier.sites.site import ActiveSite, remembered, state_of
from webfountain.records import Fetch, Fetched, SiteLease, SiteState
from webfountain.store.contract import Parked
from webfountain.urls import is_private_host, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webfountain.core.change_rate import Prior
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.colony import Beaten, Borrowed, Loan, Membership
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.frontier.sites.hand import DomainShare, DomainShares
    from webfountain.frontier.sites.politeness import AddressStatistics, Group
    from webfountain.frontier.sites.site import Errand, SiteContext, SiteStatistics
    from webfountain.records import Lease, LeaseId, SiteRecord
    from webfountain.store.contract import Claim

__all__ = ["ActiveList", "ActiveListStatistics"]

_QUANTUM: Final = 1000
"""Fetches of a site after which others that wait may have its place."""
_PATIENCE_S: Final = 1.0
"""A quiet site whose next page comes due within this time stays active; parking it would cost more."""
_FREED_S: Final = 0.5
"""How long after its delay the claim of an address that was left is surely dropped."""
_BLOCKED_S: Final = 10.0
"""A site that may not be asked for longer than this gives its place in a full active list to another."""


class ActiveListStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot. `guests` are sites without a lease, `errands` files that sites wait for from others."""

    sites: int
    guests: int
    in_flight: int
    hungry: int
    quiet: int
    errands: int
    timers: int
    addresses: AddressStatistics


class ActiveList:
    """The active list of one crawling process: at most `size` sites, and their guests.

    `others`: the ants that it shares sites and addresses with.
    """

    def __init__(self, context: SiteContext, *, size: int, others: Membership | None = None) -> None:
        self._context = context
        self._others = others
        self._size = size
        self._sites: dict[str, ActiveSite] = {}
        self._guests: set[str] = set()
        rules = context.collection.politeness
        self._addresses = Addresses(rules, shared=others is not None, by_worth=context.by_worth)
        self._hungry: dict[str, ActiveSite] = {}
        self._quiet: dict[str, ActiveSite] = {}
        self._resting: dict[str, ActiveSite] = {}
        self._timers: list[tuple[float, str]] = []
        self._timer_of: dict[str, float] = {}
        self._in_flight: dict[int, tuple[ActiveSite, Group]] = {}
        self._kept: dict[LeaseId, str] = {}  # leases that are not settled for a while, and their sites
        self._askers: dict[str, list[str]] = {}  # URL of a file -> the sites that wait for it from another
        self._given_back: set[Loan] = set()
        self._invited: dict[str, list[Errand]] = {}  # site -> errands, until the store has told what it knows of it

    # ------------------------------------------------------------ hot path

    def next(self, at: float) -> Fetch | None:
        """The next fetch that politeness allows; None when there is none at `at`."""
        fetch = self._addresses.ring.next(at)
        if fetch is None:
            return None
        site = self._sites[fetch.site]
        group = site.group
        assert group is not None
        site.sent()
        self._in_flight[fetch.id] = (site, group)
        if fetch.address != group.address:  # the site has moved since
            fetch = msgspec.structs.replace(fetch, address=group.address, fallbacks=site.fallbacks)
        if site.is_hungry():
            self._hungry[site.name] = site
        if site.domain is not None and fetch.kind == "page":
            self._spend(site.domain)
        return fetch

    def _spend(self, domain: DomainShare) -> None:
        """A page of a domain is asked: others may have their turn because of it."""
        shares = self._context.shares
        assert shares is not None
        self.wake(shares.spend(domain))

    def wake_at(self) -> float:
        """When `next` may have something without any landing or work; inf: never."""
        return min(self._addresses.ring.wake_at(), self._timers[0][0] if self._timers else inf)

    def landed(self, fetched: Fetched, batch: Batch) -> None:
        """A fetch ended, however: exactly once for each that `next` gave. What it brought of a lost site is dropped."""
        fetch = fetched.fetch
        site, group = self._in_flight.pop(fetch.id)
        plain = site.landed(fetched, group, batch)
        if site.borrowed is not None and not plain and not site.is_lost():
            self._quit(site, fetched, batch)
        if group is not site.group or site.is_lost():
            self._addresses.ring.wake(group.turns)
        if fetched.address in site.fallbacks and not site.is_lost():
            self._addresses.move(site, fetched.address)  # it answered, but its turn there did not come
        if plain:
            self._wake(site)
            return
        if fetch.kind != "page" and not site.is_lost():
            if fetch.kind == "robots":
                self._context.metrics.inc("robots/fetched")
            self._deliver(fetched, batch, own=site)
        self._note(site, batch.at)

    def unasked(self, fetch: Fetch, at: float) -> None:
        """A fetch that `next` gave was not requested: the gates it passed are open as before."""
        site, group = self._in_flight.pop(fetch.id)
        site.unasked(group, at)
        self._addresses.ring.wake(group.turns)
        self._wake(site)

    def detour(self, fetch: Fetch, address: str, at: float) -> float:
        """Seconds that a fetch under way must wait before it may ask another address; see `Addresses.detour`."""
        site, group = self._in_flight[fetch.id]
        if site.is_lost():
            return inf
        wait = self._addresses.detour(site, group, address, at)
        if wait <= 0.0:
            assert site.group is not None
            self._in_flight[fetch.id] = (site, site.group)
        return wait

    def given_back(self, lease: Lease, batch: Batch) -> None:
        """A page that landed was no fetch: its lease goes back."""
        batch.release([lease.id])
        if (site := self._sites.get(lease.site)) is not None:
            site.settled(1)
            site.refresh()
            self._note(site, batch.at)

    def keep(self, lease: LeaseId) -> None:
        """A lease is not settled for a while, or in this run: its site takes nobody's place."""
        self._kept[lease] = lease.site

    def unkeep(self, lease: LeaseId) -> None:
        """The lease is settled now."""
        del self._kept[lease]

    @property
    def kept(self) -> int:
        """Leases that are kept."""
        return len(self._kept)

    def finished(self, visit: Visit, batch: Batch) -> bool:
        """A page was examined: it is to be settled. What came of one of a lost site is dropped; False then."""
        site = self._sites.get(visit.fetched.fetch.site)
        if site is None or not site.finished(visit, batch):
            self._context.metrics.inc("ant/settle_lost")
            return False
        if site.wake_at < self._timer_of.get(site.name, inf):
            self._remind(site)
        return True

    @property
    def in_flight(self) -> int:
        """Fetches handed out that have not landed."""
        return len(self._in_flight)

    def prior(self, name: str) -> Prior:
        """What is believed of the change rates of a site's pages."""
        site = self._sites.get(name)
        return self._context.believed if site is None else site.prior()

    # ----------------------------------------------------------- who joins

    def room(self) -> int:
        """How many more sites the list takes."""
        return max(self._size - len(self._sites) + len(self._guests) + len(set(self._kept.values())), 0)

    def unresolved(self) -> list[str]:
        """Hosts whose address is needed; each is named once until `resolved` answers."""
        return self._addresses.unresolved()

    def resolved(self, host: str, addresses: Sequence[str], error: str, batch: Batch) -> None:
        """The addresses of a host, or none and why; a public one is taken where there is one."""
        if not self._context.collection.network.allow_private:
            addresses = [address for address in addresses if not is_private_host(address)] or addresses
        for site, group in self._addresses.resolved(host, addresses[0] if addresses else None):
            if group is not None:
                self._send(site.resolved(group, tuple(addresses[1:]), batch), batch)
            else:
                self._send(site.unreachable(error, batch), batch)
            self._note(site, batch.at)

    def take_in(self, result: BatchResult, batch: Batch) -> None:
        """What a batch brought about: the lost go, others join, leases and news reach their sites."""
        for name in result.lost:
            self._lose(name, batch)
        for name, many in result.settled.items():
            if (site := self._sites.get(name)) is not None:
                site.settled(many)
                self._note(site, batch.at)
        for renewed in result.renewed:
            if (site := self._sites.get(renewed.site)) is not None:
                site.renewed(renewed)
        self._take_others(result, batch)
        self._take_leases(result, batch)
        # In order of name: the order of a set decides no turn.
        for name in sorted(result.hurried & self._sites.keys()):
            self._sites[name].recall(batch)
            self._note(self._sites[name], batch.at)
        best: dict[str, float] = dict.fromkeys(result.hot, HOT)
        for link in result.batch.offers:
            best[link.site] = max(link.importance, best.get(link.site, -inf))
        self._outrank(best, batch)
        self.refresh(result.new_pages, batch.at)
        for read in result.sitemaps:
            if (site := self._sites.get(read.site)) is not None:
                self._send(site.name_sitemaps(read.children, batch), batch)
                self._note(site, batch.at)

    def _take_others(self, result: BatchResult, batch: Batch) -> None:
        """What is this ant's now, and what others need of it."""
        for letter in result.returned:
            if (site := self._sites.get(letter.site)) is not None:
                site.returned(letter, batch)
                self._note(site, batch.at)
        for lease in result.activated:
            self._admit(lease, batch)
        for claim in result.claims:
            self._claimed(claim, batch)
        for name, record in result.guests:
            self._welcome(name, record, batch)

    def _take_leases(self, result: BatchResult, batch: Batch) -> None:
        """Leases go into the hands of their sites; those of a site that left meanwhile go back."""
        for name, leases in result.immediate.items():
            if (site := self._sites.get(name)) is None:
                batch.release(lease.id for lease in leases)
            else:
                site.hurried(leases, batch)
                self._note(site, batch.at)
        for dealt in result.dealt:
            if (site := self._sites.get(dealt.site)) is None:
                batch.release(lease.id for lease in dealt.never_crawled + dealt.recrawl)
            else:
                site.dealt(dealt, batch)
                self._note(site, batch.at)

    def _outrank(self, best: Mapping[str, float], batch: Batch) -> None:
        """Hot pages were found, or another project's requests offered: they go before less that is leased, too."""
        for name, importance in sorted(best.items()):
            if (site := self._sites.get(name)) is not None:
                site.outrank(importance, batch)
                self._note(site, batch.at)

    def refresh(self, names: Iterable[str], at: float) -> None:
        """The store has something new for these sites; in whatever order they are named."""
        for name in sorted(self._sites.keys() & set(names)):
            self._sites[name].refresh()
            self._note(self._sites[name], at)

    def refresh_soonest(self, many: int, at: float) -> None:
        """Pages come due sooner than was thought: ask those sites first that would be next."""
        quiet = (site for site in self._sites.values() if site.is_quiet())
        self.refresh([site.name for site in heapq.nsmallest(many, quiet, key=lambda site: site.wake_at)], at)

    def _admit(self, lease: SiteLease, batch: Batch) -> None:
        """A site was activated; one that is a guest already keeps its gate."""
        if self._others is not None and not self._others.hold_until(lease.until, at=batch.at):
            return  # it took longer to hear of it than it lasts: it runs out, and is somebody's again
        site = self._sites.get(lease.site)
        if site is not None and site.borrowed is not None:
            if site.is_under_way():  # under the lease of who had it before: not both at once
                batch.park(Parked(lease, batch.at + _BLOCKED_S, remembered(lease.record)))
                return
            self._lose(lease.site, batch)
            site = None
        if site is not None:
            if lease.site in self._guests and self._others is not None:
                batch.freed[GUEST + lease.site] = batch.at
            self._guests.discard(lease.site)
            self._send(site.adopt(lease, batch), batch)
            self._note(site, batch.at)
        else:
            state = state_of(lease, self._context.collection.politeness, batch.at)
            if lease.lost_by is not None:
                batch.remember(lease, state)
            self._enter(ActiveSite(lease.site, state, self._context, lease=lease), batch)
        self._context.metrics.inc("ant/sites_activated")

    def _claimed(self, claim: Claim, batch: Batch) -> None:
        """Whose an address is that was asked for; the sites of one that is another ant's follow it there."""
        assert self._others is not None
        address = claim.name.removeprefix(ADDRESS)
        if claim.owner == self._others.owner and self._others.hold_until(claim.until, at=batch.at):
            # Of one whose ant died nobody knows when it was last asked.
            lost = claim.lost_by is not None
            open_at = batch.at + self._context.collection.politeness.min_delay if lost else batch.at
            if not self._addresses.granted(address, open_at=open_at):
                batch.freed[claim.name] = batch.at
            return
        self._strand(address, claim.owner, claim.until, batch)

    def _strand(self, address: str, owner: str, until: float, batch: Batch) -> None:
        """An address is another ant's (or nobody's): its sites leave, and the other is told to take them."""
        assert self._others is not None
        for site in self._addresses.refused(address):
            if site.lease is None:
                self._send(site.give_files_up("busy"), batch)
                self._leave(site, until, batch)
                continue
            if owner not in ("", self._others.owner):
                batch.letters.append((owner, Take(site.name)))
                self._context.metrics.inc("ant/sites_handed_over")
            self._leave(site, until, batch)

    def claim(self, batch: Batch) -> None:
        """Have the store asked for the addresses where sites stand that nobody may ask yet."""
        batch.claims = [ADDRESS + address for address in self._addresses.unclaimed()]
        batch.freed.update({ADDRESS + address: batch.at for address in self._addresses.freed()})

    def claimed(self) -> list[str]:
        """What this ant claims among others: its addresses and guests."""
        return [ADDRESS + each for each in self._addresses.claimed()] + [GUEST + each for each in sorted(self._guests)]

    def open_times(self, at: float) -> dict[str, float]:
        """From when on another ant may ask each of our addresses and guests, if this one ends `at`."""
        opens = {ADDRESS + each: due for each, due in self._addresses.open_times(at).items()}
        return opens | {GUEST + each: self._sites[each].free_at(at) for each in sorted(self._guests)}

    def leases(self) -> list[SiteLease]:
        """The site leases that are held; those of which this ant borrows are not."""
        return [site.lease for site in self._sites.values() if site.lease is not None and site.borrowed is None]

    def heard(self, beaten: Beaten, batch: Batch) -> None:
        """A heartbeat is through: leases last longer, some sites and addresses are others' now."""
        for lease in beaten.lost:
            site = self._sites.get(lease.site)
            if site is not None and site.lease is not None and site.lease.token == lease.token:
                self._lose(lease.site, batch)
        for lease in beaten.renewed:
            if (site := self._sites.get(lease.site)) is not None:
                site.renewed(lease)
        for name in beaten.lost_claims:
            if name.startswith(GUEST):
                self._lose(name.removeprefix(GUEST), batch)
            else:
                self._strand(name.removeprefix(ADDRESS), "", batch.at, batch)
        self._end_loans(beaten.over, batch)

    # --------------------------------------------- parts of very large sites

    def parts(self) -> frozenset[str]:
        """The sites of which this ant borrows."""
        return frozenset(name for name, site in self._sites.items() if site.borrowed is not None)

    def loans(self, until: float) -> list[Loan]:
        """What this ant lends others, and will until a time."""
        return [loan for site in self._sites.values() for loan in site.loans(until)]

    def lend(self, borrowers: Sequence[str], *, unused_s: float, at: float, until: float, ends_at: float) -> None:
        """Leave slots of the sites that have the most of them to others that have time, in equal parts.

        Those that nobody used for `unused_s`; -inf: any.
        """
        spare = {
            name: many for name, site in self._sites.items() if (many := site.spare_slots(at, unused_s=unused_s)) > 0
        }
        parties = len(borrowers) + 1
        for name in sorted(spare, key=lambda name: (-spare[name], name)):
            site, left = self._sites[name], spare[name]
            for borrower in borrowers:
                slots = min(left, max(1, spare[name] // parties))
                if slots and not site.lends_to(borrower):
                    site.lend(borrower, slots, until=until, ends_at=ends_at)
                    left -= slots
                    self._context.metrics.inc("ant/loans_given")

    def _end_loans(self, over: Iterable[Loan], batch: Batch) -> None:
        """Loans that a heartbeat did not prolong are waited out; then their sites are parked, which returns leases."""
        for loan in over:
            if (site := self._sites.get(loan.site)) is not None:
                site.loan_over(loan)
        for site in self._sites.values():
            if site.write_off(batch.at) and site.group is not None:
                self._addresses.quit(site.group)

    def borrow(self, borrowed: Sequence[Borrowed], batch: Batch) -> None:
        """A heartbeat has told which sites' slots are this ant's, too; what is under way at others is cut in time."""
        others = self._others
        assert others is not None
        given = {each.loan.site: each for each in borrowed}
        for name in self.parts():
            site, now = self._sites[name], given.pop(name, None)
            group = site.group
            assert site.borrowed is not None
            assert group is not None
            if now is not None and now.loan == site.borrowed.loan:
                site.prolonged(now)
            if now is None or now.loan != site.borrowed.loan or others.ends_soon(now.loan, at=batch.at):
                self._addresses.quit(group)
            if not group.is_leaving or site.is_under_way():
                others.bound(site.borrowed.until, at=batch.at)
        # A loan stands beside its claim until the holder has read that it was given back.
        self._given_back &= {each.loan for each in given.values()}
        for each in given.values():
            if each.loan not in self._given_back and each.record is not None:
                self._enter_part(each, each.record, batch)

    def _enter_part(self, borrowed: Borrowed, record: SiteRecord, batch: Batch) -> None:
        assert self._others is not None
        loan, state = borrowed.loan, remembered(record)
        state = msgspec.structs.replace(state, next_at=max(loan.opens_at, state.next_at if state.failures else 0.0))
        lease = SiteLease(loan.site, loan.token, borrowed.until, record)
        site = ActiveSite(loan.site, state, self._context, lease=lease, borrowed=borrowed)
        if site.name in self._sites or site.lacks_robots(batch.at):
            self._given_back.add(loan)
            site.leave(batch.at, batch)
            return
        if not self._others.hold_until(borrowed.until, at=batch.at):
            return
        self._sites[site.name] = site
        group = self._addresses.place_part(site, loan.address, loan.slots)
        self._send(site.resolved(group, (), batch), batch)
        self._note(site, batch.at)
        self._context.metrics.inc("ant/loans_taken")

    def _quit(self, site: ActiveSite, fetched: Fetched, batch: Batch) -> None:
        """A site of another ant refused a request, or did not answer: that one decides what becomes of it."""
        if site.group is not None and not site.group.is_leaving:
            site.quit(fetched, batch)
            self._addresses.quit(site.group)

    def shed(self, surplus: int) -> None:
        """Let whole addresses with about so many sites go to other ants, as soon as nothing is under way there."""
        self._addresses.let_go(surplus)

    def _welcome(self, name: str, record: SiteRecord | None, batch: Batch) -> None:
        """The store told what it knows of a site that others need files of: a guest from now on, unless it is ours."""
        errands = self._invited.pop(name, [])
        if not errands:
            return
        if name not in self._sites:
            if record is not None and record.owner is not None:
                self._send([errand._replace(error="busy") for errand in errands], batch)
                return
            self._guests.add(name)
            state = SiteState() if record is None else remembered(record)
            self._enter(ActiveSite(name, state, self._context, lease=None), batch)
        for errand in errands:
            self._visit(errand, batch)

    def _enter(self, site: ActiveSite, batch: Batch) -> None:
        self._sites[site.name] = site
        group = self._addresses.enter(site)
        if group is not None:
            self._send(site.resolved(group, (), batch), batch)
        self._note(site, batch.at)

    # ------------------------------------------ files that sites need of others

    def _send(self, errands: Iterable[Errand], batch: Batch) -> None:
        """See to what a site cannot do alone; an errand with an error came back without the file."""
        for errand in errands:
            if errand.error is not None:
                fetch = Fetch(0, errand.kind, errand.url, site_of(errand.url), None)
                self._deliver(Fetched(fetch, batch.at, 0.0, error=errand.error), batch)
                continue
            askers = self._askers.setdefault(errand.url, [])
            askers.append(errand.asker)
            if len(askers) > 1:
                continue  # it waits to be fetched for another: one fetch serves both
            if site_of(errand.url) in self._sites:
                self._visit(errand, batch)
            else:
                self._invited.setdefault(site_of(errand.url), []).append(errand)

    def _visit(self, errand: Errand, batch: Batch) -> None:
        """Let the site that has the file fetch it in its turn."""
        site = self._sites[site_of(errand.url)]
        self._send(site.visit(errand.kind, errand.url, batch), batch)
        self._note(site, batch.at)

    def _deliver(self, fetched: Fetched, batch: Batch, *, own: ActiveSite | None = None) -> None:
        """A file was fetched, or is not to be had: to those that wait for it; else it was the site's own."""
        askers = self._askers.pop(fetched.fetch.url, [])
        if fetched.fetch.kind == "sitemap":
            askers = askers[:1]  # who named it first; the others get its pages with it
        if own is not None and (not askers or own.is_asking(fetched.fetch.url)):
            self._send(own.answered(fetched, batch), batch)
        for name in askers:
            asker = self._sites.get(name)
            if asker is not None and (fetched.fetch.kind == "sitemap" or asker.is_asking(fetched.fetch.url)):
                self._send(asker.answered(fetched, batch), batch)
                self._note(asker, batch.at)
            elif asker is None and fetched.fetch.kind == "sitemap" and fetched.status == 200:
                batch.read_sitemap(fetched, of=name)

    # ------------------------------------------------------- what sites need

    def ripen(self, batch: Batch) -> None:
        """See to the sites whose time has come, and forget addresses that no site needs any more."""
        while self._timers and self._timers[0][0] <= batch.at:
            site = self._sites.get(heapq.heappop(self._timers)[1])
            if site is not None and site.wake_at <= batch.at:
                self._send(site.ripen(batch), batch)
                if site.wake_at > batch.at:
                    self._timer_of.pop(site.name, None)
                self._note(site, batch.at)
        self._addresses.sweep(batch.at)

    def divide(self, shares: DomainShares, at: float) -> None:
        """Hold the domains that had their share against those that are busy."""
        idle = not self._in_flight and self._addresses.ring.wake_at() == inf
        found = (
            (site.domain, site.is_busy(at + _BLOCKED_S))
            for site in self._sites.values()
            if site.domain is not None and site.has_pages()
        )
        self.wake(shares.check(at, found, idle=idle))

    def wake(self, names: Iterable[str]) -> None:
        """These sites may be asked again: their domain has its share no longer."""
        for name in names:
            self._wake(self._sites[name])

    def refill(self, batch: Batch) -> None:
        """Order leases for the hungry sites, but for those that are to leave."""
        for site in self._hungry.values():
            if site.is_hungry() and not (site.group is not None and site.group.is_leaving):
                site.refill(batch)
                self._timer_of.pop(site.name, None)
        self._hungry.clear()

    def judge_again(self, batch: Batch) -> None:
        """The policy was edited: no site goes on with pages that were judged before."""
        for site in self._sites.values():
            site.judge_again(batch)
            self._note(site, batch.at)

    def renew_leases(self, batch: Batch) -> None:
        """The heartbeat: all site leases are to last longer."""
        batch.renewals = self.leases()

    def renew_robots(self, batch: Batch) -> None:
        """Ask again for the robots.txt of sites that stay active past its life."""
        if self._context.obey_robots:
            for site in [site for site in self._sites.values() if site.must_renew_robots(batch.at)]:
                self._send(site.renew_robots(batch), batch)
                self._note(site, batch.at)

    def invite(self, batch: Batch) -> None:
        """Have the store told whether any site is active, and of the sites that others need files of."""
        batch.holds_sites = bool(self._sites)
        batch.guests = list(self._invited)

    def is_starved(self) -> bool:
        """Whether the store has no due page that the hands have room for."""
        return all(site.is_starved() for site in self._sites.values())

    def has_before(self, until: float) -> bool:
        """Whether any site has something that may be asked before a time."""
        return bool(self._invited) or any(site.has_before(until) for site in self._sites.values())

    def statistics(self) -> ActiveListStatistics:
        """A frozen snapshot."""
        return ActiveListStatistics(
            sites=len(self._sites) - len(self._guests),
            guests=len(self._guests),
            in_flight=len(self._in_flight),
            hungry=len(self._hungry),
            quiet=len(self._quiet),
            errands=len(self._askers),
            timers=len(self._timers),
            addresses=self._addresses.statistics(),
        )

    def statistics_of(self, name: str) -> SiteStatistics | None:
        """A frozen snapshot of one site; None when it is not on the list."""
        site = self._sites.get(name)
        return None if site is None else site.statistics()

    def _note(self, site: ActiveSite, at: float) -> None:
        """See what a site needs after an event, and when it is available again."""
        hungry, quiet, rests = site.needs(at + _BLOCKED_S)
        if hungry:
            self._hungry[site.name] = site
        if quiet:
            self._quiet[site.name] = site
        if rests:
            self._resting[site.name] = site
        if site.wake_at < self._timer_of.get(site.name, inf):
            self._remind(site)
        self._wake(site)

    def _wake(self, site: ActiveSite) -> None:
        """Look again when a site is available, and whether it is in a hurry."""
        if site.group is not None:
            site.group.turns.wake(site.sequencer)

    def _remind(self, site: ActiveSite) -> None:
        """Have a site looked at when something of it comes due."""
        due = self._timer_of[site.name] = site.wake_at
        heapq.heappush(self._timers, (due, site.name))
        if len(self._timers) > 1000 + 4 * len(self._sites):
            # Sites that left would be remembered here until their pages are due, in months.
            sites = self._sites.get
            self._timers = [each for each in self._timers if (of := sites(each[1])) and of.wake_at == each[0]]
            heapq.heapify(self._timers)

    # ------------------------------------------------------------ who leaves

    def let_leave(self, batch: Batch, *, others_wait: bool) -> float:
        """Park the sites that are done, and when others wait the resting and well served; when the first is back."""
        at = batch.at
        leaving = {site: site.wake_at for site in self._quiet.values() if site.is_done(at, patience_s=_PATIENCE_S)}
        self._quiet = {name: site for name, site in self._quiet.items() if site.is_quiet()}
        if self._resting:
            leaving = self._resting_now(batch) | leaving
        if others_wait and not self.room():
            leaving = {
                site: self._back_at(site, at) for site in self._sites.values() if self._may_go(site, at)
            } | leaving
        for group in self._addresses.leaving() if self._others is not None else ():
            if not any(site.is_under_way() for site in group.sites):
                # Not before the address is free: who takes a site sooner would hand it back.
                free = max(at, group.gate.next_for_others(at, 0.0)) + _FREED_S
                leaving = dict.fromkeys((site for site in group.sites if site.lease is not None), free) | leaving
        back = inf
        for site, due in leaving.items():
            back = min(back, self._leave(site, due, batch))
        return back

    def leave_all(self, batch: Batch) -> None:
        """The crawl ends: every site leaves, and may be asked again as soon as politeness allows."""
        for site in list(self._sites.values()):
            self._leave(site, batch.at, batch)

    def _resting_now(self, batch: Batch) -> dict[ActiveSite, float]:
        """Sites that asked to be left alone for long leave, so that the store keeps that through a kill.

        A guest stays until its gate is open, for nobody else remembers that; who waits for it waits no longer.
        """
        at = batch.at
        self._resting = {
            name: site
            for name, site in self._resting.items()
            if self._sites.get(name) is site and site.opens_at() > at + _BLOCKED_S
        }
        for site in [site for site in self._resting.values() if site.lease is None]:
            self._send(site.give_files_up("busy"), batch)
        return {site: at for site in self._resting.values() if self._may_go(site, at)}

    def _may_go(self, site: ActiveSite, at: float) -> bool:
        """Whether a busy site gives its place to one that waits."""
        if site.lease is None or site.is_bound():
            return False
        return not site.is_busy(at + _BLOCKED_S) or site.has_served(_QUANTUM)

    def _back_at(self, site: ActiveSite, at: float) -> float:
        """When a site that gives its place away may have it again: at once, but where its domain had its share."""
        shares = self._context.shares
        is_capped = site.domain is not None and not site.domain.is_open
        return at + shares.rest_s if shares is not None and is_capped else at

    def _leave(self, site: ActiveSite, due: float, batch: Batch) -> float:
        """Take a site off the list; when it comes back."""
        self._remove(site)
        self._send(site.leave(due, batch), batch)
        if site.borrowed is not None:
            self._given_back.add(site.borrowed.loan)
            return inf
        if site.lease is None:
            if self._others is not None:
                batch.freed[GUEST + site.name] = site.free_at(batch.at)
            return inf
        self._context.metrics.inc("ant/sites_parked")
        return batch.parked[-1].due

    def _lose(self, name: str, batch: Batch) -> None:
        """Somebody took a site over: nothing more is asked of it, and what is under way is dropped."""
        site = self._sites.get(name)
        if site is not None:
            self._remove(site)
            self._send(site.lose(), batch)
            self._context.metrics.inc("ant/sites_lost")

    def _remove(self, site: ActiveSite) -> None:
        for sites in (self._sites, self._hungry, self._quiet, self._resting, self._timer_of):
            sites.pop(site.name, None)
        self._guests.discard(site.name)
        if self._context.shares is not None and site.domain is not None:
            self._context.shares.leave(site.name, site.domain)
        self._addresses.leave(site)
