"""The counts of the store (pages by state, sites, leases), read rarely because they are expensive on a shared store.

Place in the walk: the store worker requests them with a batch. The counts of a shared store are a sum over its shards:
256 reads. When each of twenty idle ants computed the sum, this was most of the server's load. So the ant that computed
it last stores it with a claim, and the others read that one row while it is recent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from webfountain.store.answers import Statistics

if TYPE_CHECKING:
    from webfountain.store.answers import Claim
    from webfountain.store.contract import CensusReader, FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["OwnCounts", "SharedCounts", "StoreCounts", "counts_of"]

COUNTS: Final = "role/counts"
"""Claim of the ant that computed the counts last. Its note contains the counts."""
BUSY_S: Final = 1.0
IDLE_S: Final = 2.0
"""Largest age of stored counts, s: for an ant with sites, and for an ant without."""


class StoreCounts(Protocol):
    """The counts of a store."""

    def take(self, at: float, *, idle: bool) -> Statistics:
        """Return the counts, at most some seconds old. `idle` is True if the ant has nothing to do."""
        ...

    def last(self) -> Statistics:
        """Return the last known counts, without a request to a server."""
        ...


class OwnCounts:
    """The counts of a store that only one process uses. They cost nothing."""

    def __init__(self, census: CensusReader) -> None:
        self._census = census

    def take(self, at: float, *, idle: bool) -> Statistics:
        """Return the current counts."""
        del at, idle
        return self._census.statistics()

    def last(self) -> Statistics:
        """Return the current counts."""
        return self._census.statistics()


class SharedCounts:
    """The counts of a store that many ants share. `owner` is the name of this ant."""

    def __init__(self, census: CensusReader, claims: Claims, *, owner: str) -> None:
        self._census = census
        self._claims = claims
        self._owner = owner
        self._known: Statistics | None = None

    def take(self, at: float, *, idle: bool) -> Statistics:
        """Return the stored counts, or compute them again if they are old. This takes one round trip, or three if they
        are old.
        """
        [claim] = self._claim(at, idle=idle)
        if claim.owner != self._owner and claim.note:
            self._known = Statistics(**msgspec.msgpack.decode(claim.note))
            return self._known
        self._known = self._census.statistics()
        self._claim(at, idle=idle, note=msgspec.msgpack.encode(self._known))
        return self._known

    def last(self) -> Statistics:
        """Return the counts that `take` returned last; the first time, read them from the store."""
        if self._known is None:
            self._known = self._census.statistics()
        return self._known

    def _claim(self, at: float, *, idle: bool, note: bytes = b"") -> list[Claim]:
        if not note and self._known is not None:
            note = msgspec.msgpack.encode(self._known)  # for ants that read it before the sum is computed
        until = at + (IDLE_S if idle else BUSY_S)
        return self._claims.claim([COUNTS], owner=self._owner, until=until, at=at, notes={COUNTS: note})


def counts_of(store: FrontierStore, *, owner: str) -> StoreCounts:
    """Return the counts of a store for one of its ants."""
    return OwnCounts(store.census) if store.claims is None else SharedCounts(store.census, store.claims, owner=owner)
