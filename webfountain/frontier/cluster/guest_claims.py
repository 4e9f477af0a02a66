"""Claims on guests: while one ant requests a file from a site, no other ant crawls the site.

Place in the walk: stages of the store worker. A guest is a site without a lease from which other sites need a file
(`sites.active_list`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from webfountain.frontier.batch import remembered
from webfountain.frontier.cluster.claim_names import GUEST
from webfountain.frontier.worker.stage import Stage
from webfountain.records import SiteRecord
from webfountain.store.answers import ParkRequest

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.records import SiteLease
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["ClaimedGuests", "OwnGuests"]


class OwnGuests(Stage):
    """A stage for a store that only this process uses: read the guests from the store."""

    def __init__(self, store: FrontierStore) -> None:
        self._store = store

    def welcome(self, batch: Batch, result: BatchResult) -> None:
        result.guests = [(name, self._store.sites.get(name)) for name in batch.guests]


class ClaimedGuests(Stage):
    """A stage for a shared store: claim the guests. A guest is refused as busy if another ant holds it, as a site or
    as a guest.

    This ant claims a guest before it reads the site's owner. An ant that activates a site reads the claims afterwards.
    So of two ants, at least one sees the other.
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
