"""Keep the table of active sites, and record what each site needs.

After each event, `note` records what a site needs, so that nothing has to scan all sites. Before each batch, the table
processes the timers that are due. `FileRequests` keeps the requests of sites for files on other hosts: a robots.txt or
a sitemap. If the site with the file is not active, it becomes a guest. A request for a file obeys the gates and
robots.txt of the site that has the file. If several sites need the same file, it is fetched once.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.sites.site import State
from webfountain.frontier.stage import Order
from webfountain.records import Fetch, FetchResult
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.frontier.sites.site_files import FileRequest

__all__ = ["BLOCKED_S", "FileRequests", "SiteTable", "is_busy", "may_rest"]

BLOCKED_S: Final = 10.0
"""A site that must be left alone for longer than this, in seconds, loses its place in the active list."""
_SPARE_TIMERS: Final = 1000
"""The timers of removed sites are dropped if the table has more timers than this, plus four per active site."""


class SiteTable(Order):
    """The active sites by name, with their timers and needs."""

    def __init__(self) -> None:
        self.by_name: dict[str, ActiveSite] = {}
        self.file_requests = FileRequests(self)
        """The sites' requests for files on other sites."""
        self.guests: set[str] = set()
        """Names of the guests, which are sites without a site lease."""
        self.hungry: dict[str, ActiveSite] = {}
        """Sites that need new leases, because few of their leased pages are left to fetch."""
        self.quiet: dict[str, ActiveSite] = {}
        """Sites whose last event left them with nothing to do."""
        self.resting: dict[str, ActiveSite] = {}
        """Sites whose last event showed that they must be left alone for a long time."""
        self.due = inf
        """Time of the next timer, UTC seconds, or inf."""
        self.timers: list[tuple[float, str]] = []
        """A heap of times, each with the name of a site, which may have left the table."""
        self._timer_of: dict[str, float] = {}

    def __iter__(self) -> Iterator[ActiveSite]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def enter(self, site: ActiveSite) -> None:
        """Add a site, as a guest if it has no lease."""
        self.by_name[site.name] = site
        if site.lease is None:
            self.guests.add(site.name)

    def adopted(self, name: str) -> None:
        """Record that a guest now has a site lease."""
        self.guests.discard(name)

    def leave(self, site: ActiveSite) -> None:
        """Remove a site, its timer and its recorded needs."""
        for sites in (self.by_name, self.hungry, self.quiet, self.resting, self._timer_of):
            sites.pop(site.name, None)
        self.guests.discard(site.name)

    # ------------------------------------------------------- needs of sites

    def note(self, site: ActiveSite, at: float) -> None:
        """Record what a site needs after an event, and update the site's next turn."""
        if _runs_low(site):
            self.hungry[site.name] = site
        else:
            self.hungry.pop(site.name, None)
            if _is_quiet(site):
                self.quiet[site.name] = site
        if site.standing.rests_until > at + BLOCKED_S:
            self.resting[site.name] = site
        self.remind(site)
        site.place.wake()

    def note_hunger(self, site: ActiveSite) -> None:
        """Record whether a site needs leases."""
        if _runs_low(site):
            self.hungry[site.name] = site

    def refill(self, batch: Batch) -> None:
        """Request leases for all sites that need them, except sites at an address that this ant is giving up."""
        for site in self.hungry.values():
            group = site.place.group
            if site.lease is not None and not (group is not None and group.is_leaving):
                site.pages.refill(site.lease, batch)
                self._timer_of.pop(site.name, None)
        self.hungry.clear()

    def refresh(self, names: Iterable[str], at: float) -> None:
        """Let sites request leases again, because the store has new pages for them."""
        for name in sorted(self.by_name.keys() & set(names)):
            site = self.by_name[name]
            site.pages.refresh()
            self.note(site, at)

    def refresh_soonest(self, many: int, at: float) -> None:
        """Of the quiet sites, let the `many` with the earliest timers request leases again: pages are due sooner than
        planned.
        """
        quiet = (site for site in self if _is_quiet(site))
        self.refresh([site.name for site in heapq.nsmallest(many, quiet, key=lambda site: site.pages.wake_at)], at)

    def idle(self, at: float) -> tuple[list[ActiveSite], list[ActiveSite]]:
        """Return the sites with nothing to do, and the sites that must be left alone for a long time."""
        if self.quiet:
            self.quiet = {name: site for name, site in self.quiet.items() if _is_quiet(site)}
        if self.resting:
            self.resting = {
                name: site for name, site in self.resting.items() if site.standing.gate.opens_at > at + BLOCKED_S
            }
        return list(self.quiet.values()), list(self.resting.values())

    # ---------------------------------------------------------------- timers

    def add(self, batch: Batch) -> None:
        """Process the timers that are due."""
        at = batch.at
        while self.timers and self.timers[0][0] <= at:
            site = self.by_name.get(heapq.heappop(self.timers)[1])
            if site is not None and site.pages.wake_at <= at:
                self.file_requests.route(site.on_timer(batch), batch)
                if site.pages.wake_at > at:
                    self._timer_of.pop(site.name, None)
                self.note(site, at)
        self._set_due()

    def _set_due(self) -> None:
        self.due = self.timers[0][0] if self.timers else inf

    def remind(self, site: ActiveSite) -> None:
        """Set the site's timer if `wake_at` is earlier than its current timer."""
        due = site.pages.wake_at
        if due >= self._timer_of.get(site.name, inf):
            return
        self._timer_of[site.name] = due
        heapq.heappush(self.timers, (due, site.name))
        if len(self.timers) > _SPARE_TIMERS + 4 * len(self.by_name):
            # Otherwise timers of removed sites would stay here until their pages are due, for months.
            sites = self.by_name.get
            self.timers = [each for each in self.timers if (of := sites(each[1])) and of.pages.wake_at == each[0]]
            heapq.heapify(self.timers)
        self._set_due()


def _runs_low(site: ActiveSite) -> bool:
    """Return whether a site needs leases that it has not requested yet."""
    return site.state is State.OPEN and not (site.pages.is_ordered or site.is_empty()) and site.hand.runs_low()


def is_busy(site: ActiveSite, until: float) -> bool:
    """Return whether a fetch of a site is in flight, or may begin before the time `until`."""
    is_capped = site.domain is not None and not site.domain.is_open
    return bool(site.pages.under_way) or (not is_capped and site.standing.gate.opens_at <= until)


def may_rest(site: ActiveSite) -> bool:
    """Return whether a site needs no leases before its next timer."""
    return site.state is State.SHUT or (site.state is State.OPEN and site.is_empty())


def _is_quiet(site: ActiveSite) -> bool:
    """Return whether a site has nothing in flight, and nothing to fetch before its next timer."""
    return may_rest(site) and not (site.is_under_way() or site.hand.backlog())


class FileRequests:
    """Requests for files on other sites, which may be inactive."""

    def __init__(self, sites: SiteTable) -> None:
        self._sites = sites
        self._requesters: dict[str, list[str]] = {}  # by URL of a file: the sites that wait for it
        self.by_host: dict[str, list[FileRequest]] = {}
        """Requests for files on inactive sites, by name of the site. A request waits here until the store has returned
        the site's state and the site is a guest.
        """

    def take_host(self, name: str) -> list[FileRequest]:
        """Remove and return the waiting requests for files on one site."""
        return self.by_host.pop(name, [])

    def route(self, requests: Iterable[FileRequest], batch: Batch) -> None:
        """Pass each request for a file to the site that has the file. If a request has an error, deliver the error to
        the sites that wait for the file.
        """
        for request in requests:
            if request.error is not None:
                fetch = Fetch(0, request.kind, request.url, site_of(request.url), None)
                self.deliver(FetchResult(fetch, batch.at, 0.0, error=request.error), batch)
                continue
            requesters = self._requesters.setdefault(request.url, [])
            requesters.append(request.requester)
            if len(requesters) > 1:
                continue  # Another site's request is already fetching it.
            host = site_of(request.url)
            if host in self._sites.by_name:
                self.ask(request, batch)
            else:
                self.by_host.setdefault(host, []).append(request)

    def ask(self, request: FileRequest, batch: Batch) -> None:
        """Request a file from the active site that has it."""
        site = self._sites.by_name[site_of(request.url)]
        self.route(site.request_file(request.kind, request.url, batch), batch)
        self._sites.note(site, batch.at)

    def deliver(self, fetched: FetchResult, batch: Batch, *, own: ActiveSite | None = None) -> None:
        """Give a file, or its error, to all sites that wait for it. If no site waits for a file, the file goes to
        `own`, the site that fetched it.
        """
        url, sites = fetched.fetch.url, self._sites.by_name
        requesters = self._requesters.pop(url, [])
        if own is not None and (not requesters or own.files.robots.asking == url):
            self.route(own.answered(fetched, batch), batch)
        for name in requesters:
            site = sites.get(name)
            if site is not None and (fetched.fetch.kind == "sitemap" or site.files.robots.asking == url):
                self.route(site.answered(fetched, batch), batch)
                self._sites.note(site, batch.at)
            elif site is None and fetched.fetch.kind == "sitemap" and fetched.status == 200:
                batch.read_sitemap(fetched, of=name)
