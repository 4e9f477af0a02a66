"""The fetches in flight.

`next` takes a fetch out of the ring of addresses. `landed` ends each fetch once: it opens the gates again, and gives a
file to the sites that need it (`site_table`). `finished` settles a page after it was examined.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.sites.site import State
from webfountain.frontier.visit import acknowledged, counts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.addresses import Addresses, AddressGroup
    from webfountain.frontier.sites.site import ActiveSite
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_table import SiteTable
    from webfountain.frontier.sites.slot_lending import SlotLending
    from webfountain.frontier.visit import Visit
    from webfountain.records import Fetch, FetchResult, Lease, LeaseId

__all__ = ["Flights"]


class Flights:
    """The fetches in flight, each with its site and its address group."""

    def __init__(
        self,
        context: SiteContext,
        sites: SiteTable,
        addresses: Addresses,
        lending: SlotLending | None,
    ) -> None:
        self._context = context
        self._sites = sites
        self._addresses = addresses
        self._lending = lending
        self._in_flight: dict[int, tuple[ActiveSite, AddressGroup]] = {}
        self._apart: set[int] = set()  # fetches that use no slot of their gates
        self._kept: set[LeaseId] = set()  # leases of pages that landed and are not settled soon

    def __len__(self) -> int:
        """Return the number of fetches in flight."""
        return len(self._in_flight)

    def is_of(self, site: ActiveSite) -> bool:
        """Return whether a fetch of a site is in flight."""
        return any(each is site for each, _ in self._in_flight.values())

    def next(self, at: float) -> Fetch | None:
        """Return the next fetch that politeness allows now, or None."""
        fetch = self._addresses.ring.next(at)
        if fetch is None:
            return None
        site = self._sites.by_name[fetch.site]
        group = site.place.group
        assert group is not None
        site.pages.sent()
        self._in_flight[fetch.id] = (site, group)
        self._context.metrics.inc("fetch/started")
        if fetch.kind == "page":
            self._count_page(fetch)
        if fetch.address != group.address:  # The site has moved to another address since.
            fetch = msgspec.structs.replace(fetch, address=group.address, fallbacks=site.place.fallbacks)
        self._sites.note_hunger(site)
        if site.domain is not None and fetch.kind == "page":
            shares = self._context.shares
            assert shares is not None
            self.wake(shares.spend(site.domain))
        return fetch

    def _count_page(self, fetch: Fetch) -> None:
        known = fetch.lease is not None and fetch.lease.record.state != "never-crawled"
        self._context.follower.count()
        self._context.metrics.inc("sequencer/recrawl" if known else "sequencer/never_crawled")

    def wake(self, names: Iterable[str]) -> None:
        """Update the next turns of sites whose domains may now have more fetches."""
        for name in names:
            self._sites.by_name[name].place.wake()

    # ---------------------------------------------------------------- the end of a fetch

    def landed(self, fetched: FetchResult, batch: Batch) -> None:
        """Process the end of a download. Call this method exactly once for each fetch that `next` returned. If another
        process took the site over, or the site has left the list, the answer is dropped.
        """
        fetch = fetched.fetch
        if fetch.kind != "page" and self._context.keeps_answers:
            batch.answers.append(fetched)
        site, group = self._in_flight.pop(fetch.id)
        refused = site.landed(fetched, group, batch)
        if fetch.id in self._apart:
            self._apart.remove(fetch.id)
            site.standing.gate.narrow()
            group.gate.narrow()
        if self._sites.by_name.get(site.name) is not site:  # The site has left the list since.
            self._addresses.ring.wake(group)
            return
        if refused and self._lending is not None:
            self._lending.refused(site, fetched, batch)
        if group is not site.place.group:
            self._addresses.ring.wake(group)
        if fetched.address in site.place.fallbacks:
            # The address accepted the connection, but gave the request no slot in time.
            self._addresses.move(site.place, fetched.address)
        if fetch.kind == "page" and not refused:
            site.place.wake()
            return
        if fetch.kind != "page":
            if fetch.kind == "robots":
                self._context.metrics.inc("robots/fetched")
            self._sites.file_requests.deliver(fetched, batch, own=site)
        self._sites.note(site, batch.at)

    def unasked(self, fetch: Fetch) -> None:
        """Process the end of a page fetch whose request was never sent. Call this method instead of `landed`. If a
        request was never sent, the gates of the site and its address open without a delay.
        """
        site, group = self._in_flight.pop(fetch.id)
        site.standing.unasked(group.gate, self._context.clock.now())
        self._addresses.ring.wake(group)
        site.place.wake()

    def finished(self, visit: Visit, batch: Batch) -> bool:
        """Settle an examined page. If another process took the page's site over, drop the page and return False."""
        site = self._sites.by_name.get(visit.fetched.fetch.site)
        if site is None or not site.finished(visit, batch):
            self._context.metrics.inc("ant/settle_lost")
            return False
        self._sites.remind(site)
        self._context.metrics.add(counts_of(visit))
        return True

    def given_back(self, lease: Lease, batch: Batch) -> None:
        """Release the lease of a page whose fetch ended without a result."""
        batch.release([lease.id])
        self._context.metrics.inc("ant/lapsed")
        site = self._sites.by_name.get(lease.site)
        if site is not None and site.lease is not None and site.lease.token == lease.id.token:
            site.pages.settled(1)
            site.pages.refresh()
            self._sites.note(site, batch.at)

    def acknowledged(
        self, lease: Lease, batch: Batch, *, status: int | None, error: str | None, seconds: float, due: float | None
    ) -> None:
        """Settle a finished request of a Scrapy project's spider."""
        outcome = acknowledged(lease, status=status, error=error, at=batch.at, seconds=seconds, due=due)
        batch.settle(lease, outcome)
        self._context.metrics.inc(f"outcome/{outcome.kind}")

    # ------------------------------------------------------- pages that stay leased

    def keep(self, lease: LeaseId) -> None:
        """Record that a lease will not end soon, for example because the request's callback yielded requests that must
        end first. A site with a lease recorded by `keep` does not count towards the maximum size of the active list.
        """
        self._kept.add(lease)

    def unkeep(self, lease: LeaseId) -> None:
        """Undo `keep`, because the lease will end soon."""
        self._kept.remove(lease)

    @property
    def kept(self) -> int:
        """Number of leases recorded by `keep`."""
        return len(self._kept)

    def kept_sites(self) -> int:
        """Return the number of sites that have a lease recorded by `keep`."""
        return len({lease.site for lease in self._kept})

    # ----------------------------------------------------- while it is under way

    def queue_full(self, fetch: Fetch) -> None:
        """Send no new request to a site while one of its fetches waits in the downloader's queue."""
        self._in_flight[fetch.id][0].standing.gate.close()

    def queue_empty(self, fetch: Fetch, *, wait_s: float) -> None:
        """Allow the next fetch of a site after `wait_s`, because its waiting fetch has left the downloader's queue.

        Call this method before the fetch ends.
        """
        site, _ = self._in_flight[fetch.id]
        site.standing.gate.reopen(self._context.clock.now() + wait_s)
        site.place.wake()

    def count_apart(self, fetch: Fetch) -> None:
        """Give a site one more slot while a fetch of the site uses another host's downloader slot."""
        if fetch.id not in self._apart:
            self._apart.add(fetch.id)
            site, group = self._in_flight[fetch.id]
            site.standing.gate.widen()
            group.gate.widen()
            site.place.wake()

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Count one more body of a site as unread during a ``with`` block. A site with many unread bodies gets no new
        requests.
        """
        site = self._sites.by_name.get(name)
        if site is None:
            yield
            return
        site.hand.add_unread(1)
        try:
            yield
        finally:
            site.hand.add_unread(-1)
            site.place.wake()

    def detour(self, fetch: Fetch, address: str) -> float:
        """Return for how many seconds a fetch must wait before it may use another address of its host
        (`Addresses.detour`).
        """
        site, group = self._in_flight[fetch.id]
        if site.state is State.LOST:
            return inf
        wait = self._addresses.detour(site.place, group, address, self._context.clock.now())
        if wait <= 0.0:
            there = self._addresses.group_at(site.place, address)
            self._in_flight[fetch.id] = (site, there)
            if fetch.id in self._apart and there is not group:
                group.gate.narrow()
                there.gate.widen()
                self._addresses.ring.wake(there)
        return wait
