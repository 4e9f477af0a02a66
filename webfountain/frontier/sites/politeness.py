"""When a site may be asked, and for what: its robots.txt, its delays, and the address that it shares with others.

How long to leave a site alone: the delay after a request, the back-off after a refusal, Retry-After; its standing.
One request at a time per site and per address, the next one after max(min_delay, factor x duration, Crawl-delay)
(Mercator's rule, Broder 2003; the Crawl-delay bounded by `max_delay`). A site that answers 429 or 503, or not at all,
or closes the connection on us, is left alone for a time that doubles with each refusal, jittered so that sites do not
come back in step.

The robots.txt of one site by RFC 9309: when it must be asked, what its answer means, how long that is believed. It is
asked once per site and kept for a day: 4xx allows everything, 5xx and no answer refuse everything until a retry
succeeds, redirects are followed (section 2.3.1), also to other hosts, whose own gates the request then passes
(`active_list`). Reading the rules is `formats.robots`' business.

Addresses: where each active site stands, and who is polite to ask now. The two upper tiers of Figure 1 of Edwards
2001: a round robin over addresses, under each a round robin over its sites, every address and every site behind its
own gate. A site enters once its address is known: at once where its name is one, else when its host is resolved.
Whoever takes a fetch out of `ring` shuts the gates it passed; the site opens them again when its fetch has landed
(`Standing`), and is then to be looked at again (`Tier.wake`). Where an address does not answer, a site
stands at the next of its host that does (`detour`).

Among several ants (`shared`) an address is asked by one ant alone. One that a site is placed at is claimed first
(`unclaimed`); until that is `granted` nothing goes out there, and where it is `refused` its sites have to leave.
Of a very large site an ant may leave slots of both gates to others (`Loans`; `colony` has the life of a loan).
"""

from __future__ import annotations

import email.utils
import ipaddress
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain import urls
from webfountain.formats.robots import MAX_ROBOTS_BYTES, RobotsRules, robots_verdict
from webfountain.frontier.sites.sequencer import ByWorth, Gate, RoundRobin, Tier
from webfountain.urls import host_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from webfountain.formats.robots import Ruling
    from webfountain.frontier.colony import Loan
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.metrics import Metrics
    from webfountain.policy import PolitenessTable
    from webfountain.records import Fetch, Fetched, SiteState

__all__ = [
    "LOAN_PAUSE_S",
    "LONGEST_BACKOFF_S",
    "MAX_HOPS",
    "ROBOTS_LIFE_S",
    "SITE_ERRORS",
    "AddressStatistics",
    "Addresses",
    "Group",
    "Loans",
    "RobotsAnswer",
    "SiteRobots",
    "Standing",
    "backoff",
    "delay_after",
    "is_redirect",
    "page_backoff",
    "refuses",
    "retry_after",
]

ROBOTS_LIFE_S: Final = 86_400.0
"""RFC 9309 section 2.4: a cached version should not be used for more than 24 hours."""
MAX_HOPS: Final = 5
_ALLOW_ALL: Final = RobotsRules.parse(b"", "*")


def is_redirect(status: int | None) -> bool:
    """Whether an answer leads to another URL."""
    return status is not None and 300 < status < 400 and status != 304


class RobotsAnswer(NamedTuple):
    """What an answer led to: another URL to ask, or a ruling."""

    hop: str | None = None
    ruling: Ruling | None = None


class SiteRobots:
    """What is known of a site's robots.txt.

    Invariant: `asking` is the URL that is asked now or waits to be, None while nothing is awaited; only the answer to
    that URL is understood.
    """

    __slots__ = ("_body", "_hops", "_parse", "_rules", "asked_at", "asking", "failures", "is_refused")

    def __init__(self, state: SiteState, parse: Callable[[bytes], RobotsRules]) -> None:
        self._parse = parse
        self._body = state.robots
        self._rules: RobotsRules | None = None
        self._hops = 0
        self.asking: str | None = None
        self.asked_at = state.robots_at
        """When it was last answered or tried; None: never."""
        self.failures = state.robots_failures
        """Tries in a row that brought no answer to obey."""
        self.is_refused = not state.robots_ok
        """Nothing may be asked: it could not be had when it was last tried."""

    # ------------------------------------------------------------- its life

    def is_needed(self, at: float) -> bool:
        """Whether it must be asked before any page goes out."""
        return self.asked_at is None or self.is_refused or self.is_outdated(at)

    def is_outdated(self, at: float) -> bool:
        """Whether what is known of it has lived its time."""
        return self.asked_at is not None and at - self.asked_at >= ROBOTS_LIFE_S

    def begin(self, site: str, at: float) -> str | None:
        """Begin to ask, where that must be done before any page goes out: the URL to fetch."""
        if not self.is_needed(at):
            return None
        self._hops = 0
        self.asking = f"{site}/robots.txt"
        return self.asking

    def waive(self) -> None:
        """It is not asked: the crawl does not obey it, or no page will go out in any case."""
        self.is_refused = False

    def answered(self, fetched: Fetched) -> RobotsAnswer:
        """Follow, obey or refuse."""
        location = fetched.header("location") if is_redirect(fetched.status) else None
        target = urls.join(fetched.fetch.url, location) if location else None
        if target is not None and self._hops < MAX_HOPS:
            self._hops += 1
            self.asking = target
            return RobotsAnswer(hop=target)
        self.asking = None
        self.asked_at = fetched.at
        ruling = robots_verdict(fetched.status, fetched.error)
        self.is_refused = ruling == "refuse"
        if self.is_refused:
            self.failures += 1
        else:
            self.failures = 0
            body = fetched.body[:MAX_ROBOTS_BYTES] if fetched.reading is None else fetched.reading
            self._body = body if ruling == "rules" else None
            self._rules = None
        return RobotsAnswer(ruling=ruling)

    # ------------------------------------------------------------- its rules

    def allows(self, url: str) -> bool:
        """Whether a canonical URL of the site may be fetched, by what is known."""
        return self._body is None or self._known().allowed(url)

    @property
    def crawl_delay(self) -> float:
        """Seconds between two requests that it asks for; 0 when it names none."""
        return 0.0 if self._body is None else self._known().crawl_delay or 0.0

    @property
    def sitemaps(self) -> Sequence[str]:
        """The sitemaps that it names, as written."""
        return self._known().sitemaps

    def _known(self) -> RobotsRules:
        if self._rules is None:
            self._rules = self._parse(self._body) if self._body else _ALLOW_ALL
        return self._rules

    def remember(self) -> tuple[bytes | None, float | None, bool, int]:
        """(body, asked at, whether it was to be had, failures): what must outlive the visit."""
        return self._body, self.asked_at, not self.is_refused, self.failures


LONGEST_BACKOFF_S: Final = 86_400.0
"""A refusal, however often repeated and whatever Retry-After asks, is forgotten after a day: then we ask once."""

SITE_ERRORS: Final = frozenset({"dns", "private-address", "connect", "timeout", "network"})
"""Errors that say something of the whole site, not of one page."""


def delay_after(seconds: float, *, min_delay: float, factor: float, crawl_delay: float, max_delay: float) -> float:
    """Seconds to wait after a request that took `seconds`."""
    return max(min_delay, min(max(factor * seconds, crawl_delay), max_delay))


def refuses(status: int | None, error: str | None) -> bool:
    """Whether an answer asks us to leave the site alone (RFC 6585, RFC 9110 section 15.6.4), or none came whole."""
    return status in (429, 503) or error in SITE_ERRORS or error == "cut"


def backoff(failures: int, *, base: float, rng: random.Random) -> float:
    """Seconds for the `failures`-th refusal in a row (1, 2, …): base doubled each time, jittered by +-25 %."""
    doubled = base * 2.0 ** min(failures - 1, 40)
    return min(doubled, LONGEST_BACKOFF_S) * rng.uniform(0.75, 1.25)


def page_backoff(failures: int, *, period: float) -> float:
    """Seconds until a gone or failed page is asked again: 1 period, doubled each time, up to 180 periods."""
    return period * min(2.0 ** min(failures - 1, 40), 180.0)


def retry_after(value: str | None, *, at: float) -> float:
    """Seconds that a Retry-After header asks for, as number or date; 0 when absent, past or unreadable."""
    if value is None:
        return 0.0
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_BACKOFF_S)
    try:
        when = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(when - at, 0.0), LONGEST_BACKOFF_S)


class Standing:
    """How a site stands with us: its gate, its Crawl-delay, and its refusals in a row.

    Invariant: whoever took a slot of the gate (and of its address's) has it given back by `landed`, exactly once.
    """

    __slots__ = ("_metrics", "_rng", "_rules", "crawl_delay", "failures", "gate", "rests_until")

    def __init__(
        self,
        state: SiteState,
        rules: PolitenessTable,
        *,
        rng: random.Random,
        metrics: Metrics,
        slots: int | None = None,
    ) -> None:
        """`slots`: so many requests at once, where not as many as the rules allow."""
        self._rules = rules
        self._rng = rng
        self._metrics = metrics
        self.gate = Gate(slots or rules.concurrency, open_at=state.next_at)
        self.crawl_delay = state.crawl_delay
        self.failures = state.failures
        """Refusals in a row (429, 503, no connection): the exponent of its back-off."""
        self.rests_until = 0.0
        """It asked to be left alone until then, or could not be reached, UTC seconds."""

    def opens_at(self) -> float:
        """From when on it may be asked again; inf while it is asked."""
        return self.gate.open_at()

    def next_at(self, at: float) -> float:
        """From when on another process may ask it, if this one ends `at`."""
        return self.gate.next_for_others(at, self.delay_s())

    def delay_s(self) -> float:
        """Seconds between two requests of a slot, at least."""
        return max(self._rules.min_delay, min(self.crawl_delay, self._rules.max_delay))

    def obey(self, crawl_delay: float, *, at: float) -> None:
        """A robots.txt was read `at`; its Crawl-delay (0: none) also holds before the first page."""
        self.crawl_delay = crawl_delay
        self.gate.hold(at + min(crawl_delay, self._rules.max_delay))

    def landed(self, fetched: Fetched, group: Group) -> bool:
        """A fetch ended, however: the gates of site and address open again when politeness says.

        `group` let it out: the site may have moved to another address since. Returns whether the site refused us.
        """
        rules = self._rules
        wait = delay_after(
            fetched.seconds,
            min_delay=rules.min_delay,
            factor=rules.delay_factor,
            crawl_delay=self.crawl_delay,
            max_delay=rules.max_delay,
        )
        self.gate.give(fetched.at + wait)
        group.gate.give(fetched.at + min(wait, max(rules.min_delay, rules.delay_factor * fetched.seconds)))
        if refuses(fetched.status, fetched.error):
            self._back_off(fetched)
            return True
        if fetched.status is not None:
            self.failures = 0
        return False

    def unasked(self, group: Group, at: float) -> None:
        """A fetch did not take place."""
        self.gate.give(at)
        group.gate.give(at)

    def unreachable(self, at: float) -> float:
        """Its host has no address; until when to leave it alone."""
        self.failures += 1
        return at + self.back_off_s(self.failures)

    def back_off_s(self, failures: int) -> float:
        """Seconds for the `failures`-th failure in a row."""
        return backoff(failures, base=max(1.0, 10.0 * self._rules.min_delay), rng=self._rng)

    def hold(self, until: float) -> None:
        """Let nothing out before a time."""
        self.gate.hold(until)

    def join(self, state: SiteState) -> None:
        """Take over what another visit of the site learned: the more careful of both holds."""
        self.gate.hold(state.next_at)
        if state.failures:
            self.rests_until = max(self.rests_until, state.next_at)
        self.failures = max(self.failures, state.failures)
        self.crawl_delay = max(self.crawl_delay, state.crawl_delay)

    def _back_off(self, fetched: Fetched) -> None:
        """Shut the gate for longer with each refusal, and as long as the site asked."""
        self.failures += 1
        if fetched.header("retry-after") is not None:
            self._metrics.inc("politeness/retry_after")
        asked = retry_after(fetched.header("retry-after"), at=fetched.at)
        self.rests_until = fetched.at + max(asked, self.back_off_s(self.failures))
        self.gate.hold(self.rests_until)
        self._metrics.inc("politeness/backed_off")


_CLAIM_S: Final = 0.25
"""How long a fetch under way waits before it asks again for an address that is not ours yet."""


class Group:
    """Active sites behind one address, or one site alone: the second tier, whose members are sites' sequencers."""

    __slots__ = ("address", "gate", "is_leaving", "is_lent", "is_ours", "key", "sites", "turns")

    def __init__(
        self,
        key: str,
        address: str,
        turns: Tier[Fetch],
        *,
        is_ours: bool,
        is_lent: bool = False,
    ) -> None:
        self.key = key
        self.address = address
        self.is_ours = is_ours
        """Whether this ant may ask there."""
        self.is_lent = is_lent
        """Whether its slots are those that the ant has lent that has the address."""
        self.is_leaving = False
        """Whether it is left to another ant: nothing new goes out, its sites are parked when they can be."""
        self.sites: dict[ActiveSite, None] = {}
        self.turns = turns
        self.gate = turns.gate


LOAN_PAUSE_S: Final = 60.0
"""A site that refused one of several ants is one's alone for so long after its rest."""


class _Lent(NamedTuple):
    """A loan to another ant, and until when that may use it at most."""

    loan: Loan
    until: float
    is_over: bool = False
    """Whether it is not to be prolonged."""


class Loans:
    """What an ant has left of one site's slots to others.

    Invariant: a slot that is lent is not the site's gate's nor its address's until `take_back`, exactly once a loan,
    after the borrower's last word or the end of its term.
    """

    __slots__ = ("_lends_from", "_lent")

    def __init__(self, state: SiteState) -> None:
        self._lent: dict[str, _Lent] = {}  # by borrower
        self._lends_from = state.next_at + LOAN_PAUSE_S if state.failures else -inf

    def __len__(self) -> int:
        """How many ants have slots of it."""
        return len(self._lent)

    def spare(self, standing: Standing, group: Group, at: float, *, unused_s: float) -> int:
        """How many more slots may be lent of those that nobody used for so long, and for as long as they have to rest.

        -inf: of all. One stays for the site itself, and none goes soon after a refusal.
        """
        if at < self._lends_from or standing.failures:
            return 0
        own = standing.gate.in_flight - sum(each.loan.slots for each in self._lent.values())
        since = at - (max(unused_s, standing.delay_s()) if unused_s >= 0.0 else unused_s)
        return min(standing.gate.spare(since), group.gate.spare(since)) - (own <= 0)

    def give(self, loan: Loan, until: float) -> None:
        """Its slots, taken from both gates, are the borrower's until a time, which `prolonged` moves."""
        self._lent[loan.borrower] = _Lent(loan, until)

    def of(self, borrower: str) -> Loan | None:
        """What that ant has of it."""
        lent = self._lent.get(borrower)
        return None if lent is None else lent.loan

    def prolonged(self, until: float) -> list[Loan]:
        """The loans that are in force and may last until a time; from now on they do."""
        lent = [each.loan for each in self._lent.values() if not each.is_over and each.loan.ends_at > until]
        for loan in lent:
            self._lent[loan.borrower] = _Lent(loan, until)
        return lent

    def end(self, loan: Loan) -> None:
        """It is not prolonged any more."""
        if (lent := self._lent.get(loan.borrower)) is not None and lent.loan == loan:
            self._lent[loan.borrower] = lent._replace(is_over=True)

    def recall(self, at: float) -> list[Loan]:
        """The site refused, and rests until `at`: all end, and none is given for a while. Returns them."""
        self._lends_from = at + LOAN_PAUSE_S
        loans = [each.loan for each in self._lent.values()]
        for loan in loans:
            self.end(loan)
        return loans

    def overdue(self, at: float) -> list[Loan]:
        """Those of which the term is over and the borrower was not heard of."""
        return [each.loan for each in self._lent.values() if each.until <= at]

    def take_back(self, loan: Loan, standing: Standing, group: Group, open_at: float) -> None:
        """Its slots are the site's again, open from a time on, or when the site has rested."""
        del self._lent[loan.borrower]
        opens = max(open_at, standing.rests_until)
        standing.gate.take_back(loan.slots, opens)
        group.gate.take_back(loan.slots, opens)


class AddressStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot: addresses known, hosts that wait to be resolved."""

    addresses: int
    resolving: int


class Addresses:
    """The addresses of the active sites. `ring` gives the next fetch that politeness allows."""

    def __init__(self, rules: PolitenessTable, *, shared: bool = False, by_worth: bool = False) -> None:
        """`by_worth`: the sites are served whose next page is the most important, not all evenly."""
        self._rules = rules
        self._shared = shared and rules.per_ip
        self.ring: RoundRobin[Fetch] = ByWorth() if by_worth else RoundRobin()
        self._groups: dict[str, Group] = {}
        self._empty: list[Group] = []
        self._waiting: dict[str, list[ActiveSite]] = {}
        self._unresolved: list[str] = []
        self._unclaimed: list[str] = []
        self._freed: list[str] = []

    # ------------------------------------------------------- coming and going

    def enter(self, site: ActiveSite) -> Group | None:
        """A site became active: its place, or None while its host's address is not known (`unresolved`)."""
        host = host_of(site.name)
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            waiting = self._waiting.setdefault(host, [])
            if not waiting:
                self._unresolved.append(host)
            waiting.append(site)
            return None
        return self.place(site, address)

    def unresolved(self) -> list[str]:
        """Hosts whose address is needed; each is named once until it is `resolved`."""
        hosts, self._unresolved = self._unresolved, []
        return hosts

    def resolved(self, host: str, address: str | None) -> list[tuple[ActiveSite, Group | None]]:
        """The sites that waited for the address of a host, each with its place there; None: the host has none."""
        waiting = self._waiting.pop(host, [])
        return [(site, None if address is None else self.place(site, address)) for site in waiting]

    def place(self, site: ActiveSite, address: str) -> Group:
        """A site's place under its address, or alone where addresses are told apart by `per_ip = false`."""
        group = self._group_at(site, address)
        group.address = address
        group.turns.add(site.sequencer)
        group.sites[site] = None
        return group

    def place_part(self, site: ActiveSite, address: str, slots: int) -> Group:
        """A place for a site of another ant, which has lent so many slots there; other sites do not share it."""
        group = Group(f"{site.name} {address}", address, Tier(self.ring, slots), is_ours=True, is_lent=True)
        self._groups[group.key] = group
        self.ring.add(group.turns)
        group.turns.add(site.sequencer)
        group.sites[site] = None
        return group

    def _group_at(self, site: ActiveSite, address: str) -> Group:
        key = address if self._rules.per_ip else site.name
        group = self._groups.get(key)
        if group is None:
            turns = Tier(self.ring, self._rules.concurrency)
            group = self._groups[key] = Group(key, address, turns, is_ours=not self._shared)
            if group.is_ours:
                self.ring.add(group.turns)
            else:
                self._unclaimed.append(key)
            self._empty.append(group)  # until `sweep` finds somebody there
        elif group.is_leaving and not group.sites:
            group.is_leaving = False  # nobody else came for it
            self.ring.add(group.turns)
        return group

    def detour(self, site: ActiveSite, group: Group, address: str, at: float) -> float:
        """A fetch under way, let out by `group`, has no answer there and would ask another address of its host.

        Returns how many seconds it must wait, and is to ask again then (inf: until somebody else has landed); 0.0 when
        it may go on: its slot is that address's now, and the site stands there.
        """
        there = self._group_at(site, address)
        if there is not group:
            opens = there.gate.open_at() if there.is_ours and not there.is_leaving else at + _CLAIM_S
            if opens > at:
                return opens - at
            there.gate.take()
            group.gate.give(at)  # nothing was asked there
            self.ring.wake(group.turns)
        self.move(site, address)
        return 0.0

    def move(self, site: ActiveSite, address: str) -> None:
        """Let a site stand at another address of its host; the one before comes last among its fallbacks."""
        before = site.group
        assert before is not None
        addresses = (before.address, *site.fallbacks)
        at = addresses.index(address)
        self.leave(site)
        site.moved(self.place(site, address), (*addresses[at + 1 :], *addresses[:at]))

    def leave(self, site: ActiveSite) -> None:
        """A site is active no more. Its address is remembered until `sweep` finds it free."""
        group = site.group
        if group is not None:
            group.turns.remove(site.sequencer)
            del group.sites[site]
            if not group.sites:
                self._empty.append(group)
            return
        waiting = self._waiting.get(host_of(site.name), [])
        if site in waiting:
            waiting.remove(site)

    def sweep(self, at: float) -> None:
        """Forget addresses without a site whose gate is open again: until then the next site there must wait too."""
        kept = []
        for group in self._empty:
            if group.sites or self._groups.get(group.key) is not group:
                continue
            if max(group.gate.open_at(), group.gate.next_for_others(at, 0.0)) > at:
                kept.append(group)
            else:
                self._remove(group)
                if self._shared and group.is_ours and not group.is_lent:
                    self._freed.append(group.key)
        self._empty = kept

    def _remove(self, group: Group) -> None:
        if group.is_ours and not group.is_leaving:
            self.ring.remove(group.turns)
        del self._groups[group.key]

    # ------------------------------------------------------ among several ants

    def unclaimed(self) -> list[str]:
        """Addresses to be claimed; each is named once until it is `granted` or `refused`."""
        wanted, self._unclaimed = self._unclaimed, []
        return wanted

    def claimed(self) -> list[str]:
        """The addresses that are ours among others'."""
        ours = (group for group in self._groups.values() if group.is_ours and not group.is_lent)
        return [group.key for group in ours] if self._shared else []

    def freed(self) -> list[str]:
        """Addresses that were ours and may be others' now; each is named once."""
        freed, self._freed = self._freed, []
        return freed

    def granted(self, key: str, *, open_at: float) -> bool:
        """An address is ours, and may be asked from a time on; False when no site needs it any more."""
        group = self._groups.get(key)
        if group is None:
            return False
        if not group.is_ours:
            group.is_ours = True
            self.ring.add(group.turns)
        group.gate.hold(open_at)
        self.ring.wake(group.turns)
        return True

    def refused(self, key: str) -> list[ActiveSite]:
        """An address is another ant's: the sites that stand there, which have to leave."""
        group = self._groups.get(key)
        if group is None:
            return []
        self._remove(group)
        group.is_ours = False
        return list(group.sites)

    def let_go(self, surplus: int) -> None:
        """Leave whole addresses with about so many sites to others, those with the fewest first."""
        for group in sorted(self._groups.values(), key=lambda group: len(group.sites)):
            if group.is_ours and not (group.is_leaving or group.is_lent) and 0 < len(group.sites) <= surplus:
                self.quit(group)
                surplus -= len(group.sites)

    def quit(self, group: Group) -> None:
        """Let nothing more out at an address: its sites leave when nothing of them is under way."""
        if group.is_ours and not group.is_leaving:
            self.ring.remove(group.turns)
            group.is_leaving = True

    def leaving(self) -> list[Group]:
        """The addresses that are left to others and have sites still."""
        return [group for group in self._groups.values() if group.is_leaving and group.sites]

    def open_times(self, at: float) -> dict[str, float]:
        """From when on another ant may ask each of our addresses, if this one ends `at`."""
        delay_s = self._rules.min_delay
        return {key: self._groups[key].gate.next_for_others(at, delay_s) for key in self.claimed()}

    def statistics(self) -> AddressStatistics:
        """A frozen snapshot."""
        return AddressStatistics(addresses=len(self._groups), resolving=len(self._waiting))
