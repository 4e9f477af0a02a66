"""What joins a site: its address, robots.txt, immediate URLs, the leases that the store dealt.

Place in the walk: between the clerk's answer (`work.Done`) and the ant's queues. Whatever was leased is judged once
more here, by the policy file as it is now and by robots.txt; what may not be asked is settled as refused. Runs in
the loop thread; what it has for the store goes into the batch being gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.pages.examiner import acknowledged, leased
from webfountain.frontier.sites import politeness
from webfountain.frontier.sites.site import ALLOW_ALL
from webfountain.frontier.store_worker import Refusal
from webfountain.policy.judge import Origin
from webfountain.policy.network import is_private_host
from webfountain.store.contract import lane_of, order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.clock import Clock
    from webfountain.frontier.pages.examiner import Examiner
    from webfountain.frontier.planning.follower import PlanFollower
    from webfountain.frontier.sites.ant import Ant
    from webfountain.frontier.sites.errands import Errands
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.frontier.store_worker import Work
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetch, Fetched, Lease, OutcomeKind, PageRecord
    from webfountain.store.contract import Dealt

__all__ = ["Arrivals"]

TRIES: Final = 5
"""Requests in a row without an answer, each after a longer back-off, until an impatient ant gives a site up."""
RELOOK: Final = 0.02
"""Share of a period after which a site whose pages were not due after all is looked at again."""

_PRIVATE: Final = "private-address"
_NO_ROBOTS: Final = "robots.txt"
_BARRED: Final[dict[str, OutcomeKind]] = {_PRIVATE: "refused", _NO_ROBOTS: "refused_by_robots"}
"""How pages of a barred site end, by why it is; all others have failed."""


class Arrivals:
    """Puts what arrives into the queues of active sites. `gather` gives the batch that the worker takes next.

    `patient`: the pages of a site that cannot be reached wait until it can; else they have failed, for who yielded them
    waits for their end. `ignores_robots` says of another project's stored request whether robots.txt is not to
    rule it.
    """

    def __init__(
        self,
        *,
        ant: Ant,
        errands: Errands,
        examiner: Examiner,
        judge: Judge,
        follower: PlanFollower,
        collection: Collection,
        metrics: Metrics,
        clock: Clock,
        gather: Callable[[], Work],
        patient: bool = True,
        ignores_robots: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        self._ant = ant
        self._errands = errands
        self._examiner = examiner
        self._judge = judge
        self._follower = follower
        self._metrics = metrics
        self._clock = clock
        self._gather = gather
        self._patient = patient
        self._ignores_robots = ignores_robots
        self._allow_private = collection.network.allow_private
        self._relook_s = RELOOK * collection.cycle.period_s

    def resolved(self, host: str, addresses: Sequence[str], *, error: str) -> None:
        """The addresses of a host name; a public one is taken where there is one and private ones are refused."""
        at = self._clock.now()
        allowed = [address for address in addresses if self._allow_private or not is_private_host(address)]
        for site in self._ant.resolved(host, allowed or addresses):
            if not addresses:
                self.unreachable(site, at, error)
            else:
                self.receive(site, at)

    def due_again(self, site: ActiveSite, record: PageRecord) -> None:
        """Note when a page of the site comes due once this record is settled."""
        heads = [(lane_of(record), order_of(record))]
        due = self._follower.schedule.due_times(site.site, heads, self._clock.now())[0]
        self._ant.due_again(site, due)

    def greet(self, site: ActiveSite, at: float) -> None:
        """A site joined the active list."""
        if not site.resolving:
            self.receive(site, at)

    def receive(self, site: ActiveSite, at: float) -> None:
        """A site has an address: bar it when that is private, and see to its robots.txt."""
        assert site.group is not None
        if not self._allow_private and is_private_host(site.group.address):
            site.barred = _PRIVATE
        self._errands.prepare(site, at)
        self.let_go(site)

    def unreachable(self, site: ActiveSite, at: float, error: str) -> None:
        """A host name without an address: the site waits, longer each time, or its pages have failed."""
        site.failures += 1
        if self._patient:
            site.dry = True
            site.recrawl_at = at + politeness.backoff(site.failures, base=self._errands.base_s, rng=self._ant.rng)
        else:
            self._give_up(site, error)
        self._metrics.inc("ant/unreachable")
        self._metrics.inc(f"fetch/error/{error}")
        self._ant.look(site)

    def landed(self, site: ActiveSite, fetched: Fetched) -> None:
        """A fetch of a site ended; called last. An impatient ant gives up a site that answers no more, or that has
        no robots.txt to show."""
        if self._patient:
            return
        if fetched.error in politeness.SITE_ERRORS and site.failures >= TRIES:
            self._give_up(site, fetched.error)
        elif fetched.fetch.kind == "robots" and site.robots_failures >= TRIES:
            self._give_up(site, _NO_ROBOTS)

    def _give_up(self, site: ActiveSite, error: str) -> None:
        """What is known of the site has failed; when it is active again it is tried again."""
        site.barred = error
        site.dry = False
        for fetch in (*site.immediate.flush(), *site.never.flush(), *site.recrawl.flush()):
            self._may_ask(site, fetch)
        self.let_go(site)
        self._ant.look(site)

    def let_go(self, site: ActiveSite) -> None:
        """Immediate URLs that waited for the site's robots.txt go on once it is known, if it allows them."""
        if site.robots_pending or site.shut:
            return
        held, site.held = site.held, []
        for fetch in held:
            self._urge(site, fetch)

    def _urge(self, site: ActiveSite, fetch: Fetch) -> None:
        if self._may_ask(site, fetch):
            site.immediate.load([fetch])
            self._ant.hurry(site)

    def hurry(self, lease: Lease) -> None:
        """An immediate URL goes before all others of its site, and its site before all others."""
        site = self._ant.sites.get(lease.site)
        if site is None:
            self._gather().released.append(lease.id)
            return
        fetch = self._ant.fetch_of(site, lease)
        if site.robots_pending or site.shut:
            site.held.append(fetch)
            if site.robots_pending:
                self._errands.hasten(site)
        else:
            self._urge(site, fetch)

    def take_deal(self, deal: Dealt, at: float) -> None:
        """Leased pages go into their site's hand, but for those that policy or robots.txt refuse now."""
        site = self._ant.sites.get(deal.site)
        if site is None:
            self._gather().released += [lease.id for lease in deal.never_crawled + deal.recrawl]
            return
        never, recrawl = (
            [fetch for fetch in (self._ant.fetch_of(site, lease) for lease in leases) if self._may_ask(site, fetch)]
            for leases in (deal.never_crawled, deal.recrawl)
        )
        # What was due and was not dealt (the hand was full, a horizon is used for a while) is looked at again soon.
        soonest = at + self._relook_s
        for due in self._follower.schedule.due_times(site.site, deal.lanes, at):
            self._ant.due_again(site, due if due > at else soonest)
        self._ant.deal(site, never, recrawl, full=bool(deal.never_crawled or deal.recrawl))

    def _may_ask(self, site: ActiveSite, fetch: Fetch) -> bool:
        """Whether a leased page may be fetched; if not it is settled as refused, or as failed."""
        record = leased(fetch)
        kind, error = self._objection(site, record)
        if kind is None:
            return True
        site.expected += 1
        at = self._clock.now()
        if kind == "failed":
            refused = acknowledged(record, status=None, error=error, at=at)
        else:
            refused = self._examiner.refused(fetch, error, at=at)
        assert fetch.lease is not None
        self.due_again(site, refused)
        self._gather().refusals.append(Refusal(fetch.lease, kind, refused))
        self._metrics.inc(f"outcome/{kind}")
        return False

    def _objection(self, site: ActiveSite, record: PageRecord) -> tuple[OutcomeKind | None, str]:
        if site.barred is not None:
            return _BARRED.get(site.barred, "failed"), site.barred
        if record.request is None:
            [verdict] = self._judge.judge([record.url], Origin("queued", record.depth, record.policy))
            if verdict.reason is not None:
                return "refused", verdict.reason
        if (
            site.robots is not ALLOW_ALL
            and not site.robots.allowed(record.url)
            and (record.request is None or not self._ignores_robots(record.request))
        ):
            return "refused_by_robots", "robots.txt"
        return None, ""
