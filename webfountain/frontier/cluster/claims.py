"""Claim addresses and guests, so that no other ant sends requests to them.

An ant claims an address before it sends requests there (`AddressClaims`). If another ant holds the address, the site is
parked, and a letter asks that ant to take the site. An ant claims each guest: a site from which it needs only a file
for another site.

The loop thread adds claims and letters to its batches, and a stage of the worker exchanges them with the store
(`AntStage`). A lone ant claims nothing (`OwnGuests`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.batch import remembered
from webfountain.frontier.cluster.ant_notes import ADDRESS, GUEST
from webfountain.frontier.inbox.notes import Drain, ForgetNote, SlotReturn, TakeSiteNote, erase, letters_of
from webfountain.frontier.stage import Order, Stage
from webfountain.records import SiteRecord
from webfountain.store.answers import ParkRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.membership import Membership
    from webfountain.frontier.inbox.notes import CopyEraser
    from webfountain.frontier.sites.addresses import Addresses
    from webfountain.frontier.sites.departures import Departures
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_table import SiteTable
    from webfountain.frontier.worker.copies import Takedowns
    from webfountain.records import SiteLease
    from webfountain.store.answers import Claim
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = [
    "AddressClaims",
    "AntStage",
    "OwnGuests",
]


class AddressClaims(Order):
    """Claims the addresses of an ant's sites, and its guests: sites from which it requests only files."""

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
        """Add the addresses to claim, and the claims to drop, to the batch."""
        batch.claims = [ADDRESS + address for address in self._addresses.unclaimed()]
        batch.freed.update({ADDRESS + address: batch.at for address in self._addresses.freed()})

    def held(self) -> list[str]:
        """Return the names of all claims on addresses and guests."""
        addresses, guests = self._addresses.claimed(), sorted(self._sites.guests)
        return [ADDRESS + each for each in addresses] + [GUEST + each for each in guests]

    def open_times(self, at: float) -> dict[str, float]:
        """Return, for each claim, when another ant may use the claimed address or site if this ant ends at `at`."""
        opens = {ADDRESS + each: due for each, due in self._addresses.open_times(at).items()}
        sites = self._sites.by_name
        return opens | {GUEST + each: sites[each].standing.next_at(at) for each in sorted(self._sites.guests)}

    def answered(self, claim: Claim, batch: Batch) -> None:
        """Begin to use an address that this ant has claimed, or give up an address that another ant holds."""
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
        """Give up an address or a guest that another ant has claimed."""
        if not name.startswith(GUEST):
            self._hand_over(name.removeprefix(ADDRESS), "", batch.at, batch)
        elif (guest := name.removeprefix(GUEST)) in self._sites.guests:  # It may have become a site of this ant.
            self._departures.lose(guest, batch)

    def leave_guests(self, batch: Batch) -> None:
        """Give up all guests, because their sites may belong to other ants since the claims ended."""
        for name in sorted(self._sites.guests):
            self._departures.leave(self._sites.by_name[name], batch.at, batch)

    def _hand_over(self, address: str, owner: str, until: float, batch: Batch) -> None:
        """Remove the sites at an address from the active list. If another ant (`owner`) holds the address, ask that ant
        by letters to take the sites.
        """
        for place in self._addresses.refused(address):
            site = self._sites.by_name[place.name]
            if site.lease is None:
                self._sites.file_requests.route(site.files.give_up("busy"), batch)
            elif owner not in ("", self._others.owner):
                batch.letters.append((owner, TakeSiteNote(site.name)))
                self._context.metrics.inc("ant/sites_handed_over")
            self._departures.leave(site, until, batch)


class AntStage(Stage):
    """The stage that exchanges claims and letters with other ants, for the ant `owner`.

    `left_behind` erases forgotten pages from copies that ended ants wrote; it is None without a repository. Claims and
    site leases last `lease_s` seconds.
    """

    def __init__(
        self,
        claims: Claims,
        store: FrontierStore,
        takedowns: Takedowns,
        *,
        owner: str,
        lease_s: float,
        left_behind: CopyEraser | None,
    ) -> None:
        self._claims = claims
        self._store = store
        self._takedowns = takedowns
        self._owner = owner
        self._lease_s = lease_s
        self._left_behind = left_behind

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        claims, until = self._claims, batch.at + self._lease_s
        if batch.freed:
            claims.drop(batch.freed, owner=self._owner, at=batch.at)
        self.sign_off(batch)
        if batch.claims:
            result.claims = claims.claim(batch.claims, owner=self._owner, until=until, at=batch.at)
        if batch.inbox and (letters := list(letters_of(claims.collect(self._owner)))):
            result.returned = [letter for letter in letters if isinstance(letter, SlotReturn)]
            sites = sorted({letter.site for letter in letters if isinstance(letter, TakeSiteNote)})
            result.activated += self._store.sites.enlist(sites, owner=self._owner, until=until, at=batch.at)
            result.is_drained |= any(isinstance(letter, Drain) for letter in letters)
            if barred := [letter for letter in letters if isinstance(letter, ForgetNote)]:
                self._takedowns.erase(barred)

    def sign_off(self, batch: Batch) -> None:
        """Send the letters of a batch to other ants."""
        for owner in sorted({owner for owner, _ in batch.letters}):
            self._claims.post(owner, [msgspec.json.encode(letter) for to, letter in batch.letters if to == owner])

    def drain(self, ants: Sequence[str]) -> None:
        """Send letters that make other ants give up their sites and end."""
        for ant in ants:
            self._claims.post(ant, [msgspec.json.encode(Drain(ant))])

    def announce(self, barred: Sequence[ForgetNote]) -> None:
        """Send letters that make all other ants erase their copies of forgotten pages. Erase forgotten pages from the
        copies of ended ants, which receive no letters.
        """
        letters = [msgspec.json.encode(note) for note in barred]
        for ant in self._claims.claims("ant"):
            if ant.owner != self._owner:
                self._claims.post(ant.owner, letters)
        if self._left_behind is not None:
            erase(self._left_behind, barred, self._store.pages)

    # ---------------------------------------------------------------- guests

    def activated(self, leases: list[SiteLease], at: float) -> list[SiteLease]:
        """Park activated sites that other ants have claimed as guests. Return the leases of the activated sites that
        were not parked.
        """
        holders = self._claims.holders([GUEST + lease.site for lease in leases], at=at)
        asked = [
            (lease, claim)
            for lease, claim in zip(leases, holders, strict=True)
            if claim is not None and claim.owner != self._owner
        ]
        self._store.sites.park(
            [ParkRequest(lease, claim.until, remembered(lease.record)) for lease, claim in asked], at=at
        )
        away = {lease.site for lease, _ in asked}
        return [lease for lease in leases if lease.site not in away]

    def welcome(self, batch: Batch, result: BatchResult) -> None:
        """Claim the guests of a batch, and read their states from the store. A guest that another ant has claimed or
        crawls is reported as busy.

        An ant claims a guest before it reads whether the site is active. An ant activates a site before it reads the
        claims on it. If two ants want the same site at once, at least one of them notices the other.
        """
        names = [GUEST + name for name in batch.guests]
        held = self._claims.claim(names, owner=self._owner, until=batch.at + self._lease_s, at=batch.at)
        free = [claim.name.removeprefix(GUEST) for claim in held if claim.owner == self._owner]
        found = [(name, self._store.sites.get(name)) for name in free]
        owned = {GUEST + name: batch.at for name, record in found if record is not None and record.owner is not None}
        if owned:
            self._claims.drop(owned, owner=self._owner, at=batch.at)
        busy = sorted(set(batch.guests) - set(free))
        result.guests = [*found, *((name, SiteRecord(name, (), inf, batch.at, owner="another")) for name in busy)]


class OwnGuests(Stage):
    """The stage that reads the states of guests, in a crawl by a single process."""

    def __init__(self, store: FrontierStore) -> None:
        self._store = store

    def welcome(self, batch: Batch, result: BatchResult) -> None:
        result.guests = [(name, self._store.sites.get(name)) for name in batch.guests]
