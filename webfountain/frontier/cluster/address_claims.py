"""Claims on addresses in a crawl with several ants: only one ant sends requests to an address.

Place in the walk: when a site is placed at an address, the address is claimed first. Nothing is sent to the address
until the claim is granted. If another ant holds the address, the site is parked, and a letter makes that ant take the
site. A lone ant uses `NoClaims`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.cluster.ant_notes import ADDRESS, GUEST
from webfountain.frontier.inbox.notes import TakeSiteNote
from webfountain.frontier.stage import Order

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.membership import Membership
    from webfountain.frontier.sites.addresses import Addresses
    from webfountain.frontier.sites.departures import Departures
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_table import SiteTable
    from webfountain.store.answers import Claim

__all__ = ["AddressClaims", "NoClaims"]


class NoClaims(Order):
    """The address claims of a lone ant, which claims nothing."""

    def held(self) -> list[str]:
        """Return no names."""
        return []

    def open_times(self, at: float) -> dict[str, float]:
        """Return no times."""
        del at
        return {}

    def answered(self, claim: Claim, batch: Batch) -> None:
        """Do nothing."""
        del claim, batch

    def lost(self, name: str, batch: Batch) -> None:
        """Do nothing."""
        del name, batch


class AddressClaims(Order):
    """What one ant claims: the addresses of its sites, and the other sites (guests) from which it requests files."""

    def __init__(
        self,
        context: SiteContext,
        sites: SiteTable,
        addresses: Addresses,
        *,
        departures: Departures,
        others: Membership,
    ) -> None:
        self._context = context
        self._sites = sites
        self._addresses = addresses
        self._departures = departures
        self._others = others

    def add(self, batch: Batch) -> None:
        """Add claims for the sites' unclaimed addresses to the batch. Drop the claims of addresses that no longer have
        sites.
        """
        batch.claims = [ADDRESS + address for address in self._addresses.unclaimed()]
        batch.freed.update({ADDRESS + address: batch.at for address in self._addresses.freed()})

    def held(self) -> list[str]:
        """Return the names of all claims: addresses and guests."""
        addresses, guests = self._addresses.claimed(), sorted(self._sites.guests)
        return [ADDRESS + each for each in addresses] + [GUEST + each for each in guests]

    def open_times(self, at: float) -> dict[str, float]:
        """Return for each claim the time from which another ant may send requests, if this ant ends at `at`."""
        opens = {ADDRESS + each: due for each, due in self._addresses.open_times(at).items()}
        sites = self._sites.by_name
        return opens | {GUEST + each: sites[each].standing.next_at(at) for each in sorted(self._sites.guests)}

    def answered(self, claim: Claim, batch: Batch) -> None:
        """Open an address that this ant now holds. Give up an address that another ant holds."""
        address = claim.name.removeprefix(ADDRESS)
        if claim.owner == self._others.owner and self._others.term.hold_until(claim.until, at=batch.at):
            # It is unknown when an ant that died sent its last request to the address.
            lost = claim.lost_by is not None
            open_at = batch.at + self._context.collection.politeness.min_delay if lost else batch.at
            if not self._addresses.granted(address, open_at=open_at):
                batch.freed[claim.name] = batch.at
            return
        self._hand_over(address, claim.owner, claim.until, batch)

    def lost(self, name: str, batch: Batch) -> None:
        """Give up an address or a guest that another ant now holds."""
        if name.startswith(GUEST):
            self._departures.lose(name.removeprefix(GUEST), batch)
        else:
            self._hand_over(name.removeprefix(ADDRESS), "", batch.at, batch)

    def _hand_over(self, address: str, owner: str, until: float, batch: Batch) -> None:
        """Make the sites at an address leave. If another ant holds the address, send it a letter to take them."""
        for place in self._addresses.refused(address):
            site = self._sites.by_name[place.name]
            if site.lease is None:
                self._sites.file_requests.route(site.files.give_up("busy"), batch)
            elif owner not in ("", self._others.owner):
                batch.letters.append((owner, TakeSiteNote(site.name)))
                self._context.metrics.inc("ant/sites_handed_over")
            self._departures.leave(site, until, batch)
