"""The exchange between ants with each batch: claims on addresses and guests, and letters.

Place in the walk: these stages of the store worker act after the sites that leave have been parked. They are used only
if the store is shared. A letter says that a site follows its address to another ant, that a page was forgotten, or that
borrowed slots are given back. A guest is a site without a lease; other sites need a file from it (`sites.active_list`).
While one ant requests a file from a site, no other ant crawls the site.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.batch import remembered
from webfountain.frontier.cluster.ant_notes import GUEST
from webfountain.frontier.inbox.notes import Drain, ForgetNote, SlotReturn, TakeSiteNote, erase, letters_of
from webfountain.frontier.stage import Stage
from webfountain.records import SiteRecord
from webfountain.store.answers import ParkRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.inbox.notes import CopyEraser
    from webfountain.frontier.worker.copies import Takedowns
    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["AntStage", "ClaimedGuests", "OwnGuests"]


class AntStage(Stage):
    """The stage that exchanges claims and letters with the other ants, for the ant `owner`. `left_behind` erases the
    copies of ants that no longer run; it is None if there are none.
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
        """Send a batch's letters to their ants."""
        for owner in sorted({owner for owner, _ in batch.letters}):
            self._claims.post(owner, [msgspec.json.encode(letter) for to, letter in batch.letters if to == owner])

    def drain(self, ants: Sequence[str]) -> None:
        """Send other ants the request to give up their sites and end."""
        for ant in ants:
            self._claims.post(ant, [msgspec.json.encode(Drain(ant))])

    def announce(self, barred: Sequence[ForgetNote]) -> None:
        """Send other ants the pages that were forgotten. Each ant erases its own copies. This ant also erases the
        copies of ants that no longer run.
        """
        letters = [msgspec.json.encode(note) for note in barred]
        for ant in self._claims.claims("ant"):
            if ant.owner != self._owner:
                self._claims.post(ant.owner, letters)
        if self._left_behind is not None:
            erase(self._left_behind, barred, self._store.pages)


class OwnGuests(Stage):
    """The stage that reads guests from a store that only this process uses."""

    def __init__(self, store: FrontierStore) -> None:
        self._store = store

    def welcome(self, batch: Batch, result: BatchResult) -> None:
        result.guests = [(name, self._store.sites.get(name)) for name in batch.guests]


class ClaimedGuests(Stage):
    """The stage that claims guests in a shared store before it reads them. A guest is refused as busy if another ant
    holds it, as a site or as a guest.

    This ant claims a guest before it reads the site's owner. An ant that activates a site reads the claims afterwards.
    So if two ants want the same site, at least one of them notices the other.
    """

    def __init__(self, claims: Claims, store: FrontierStore, *, owner: str, lease_s: float) -> None:
        self._claims = claims
        self._store = store
        self._owner = owner
        self._lease_s = lease_s

    def activated(self, leases: list[SiteLease], at: float) -> list[SiteLease]:
        """Park sites from which another ant requests a file. They become due again."""
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
        """Claim the guests of a batch, and read them from the store."""
        names = [GUEST + name for name in batch.guests]
        held = self._claims.claim(names, owner=self._owner, until=batch.at + self._lease_s, at=batch.at)
        free = [claim.name.removeprefix(GUEST) for claim in held if claim.owner == self._owner]
        found = [(name, self._store.sites.get(name)) for name in free]
        owned = {GUEST + name: batch.at for name, record in found if record is not None and record.owner is not None}
        if owned:
            self._claims.drop(owned, owner=self._owner, at=batch.at)
        busy = sorted(set(batch.guests) - set(free))
        result.guests = [*found, *((name, SiteRecord(name, (), inf, batch.at, owner="another")) for name in busy)]
