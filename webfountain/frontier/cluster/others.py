"""The other ants, as the rest of the frontier sees them: a `Membership` among several ants, or a `LoneAnt`.

A `LoneAnt` has its store to itself: nobody must be waited for, and nothing is claimed.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from webfountain.frontier.order import Order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.frontier.batch import Batch
    from webfountain.store.answers import Claim

__all__ = ["EndlessTerm", "LeaseTerm", "LoneAnt", "NoClaims", "Others"]


class LeaseTerm(Protocol):
    """The time until which the leases of this process are valid."""

    lease_s: float

    def left_s(self) -> float:
        """Return the seconds that are left for fetches; 0 or less: the term is over."""
        ...


class Others(Protocol):
    """The other ants of a store."""

    owner: str
    shared: bool
    rules: bool
    counts: bool

    @property
    def term(self) -> LeaseTerm:
        """The term of this ant's leases."""
        ...

    @property
    def ants(self) -> int:
        """The number of ants, this one included."""
        ...

    def most_sites(self, stored: float) -> int | None:
        """Return the largest number of sites that this ant takes if the store has `stored` sites; None: any number."""
        ...

    def idle_since(self) -> float | None:
        """Return a time at which every other ant was idle, -inf if there is none; None: they were not."""
        ...

    def end_within(self, seconds: float) -> None:
        """Wait for the store at most this many seconds, because this ant ends."""
        ...

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Drop claims, each from its own time on, then this ant's name. Runs in the worker thread."""
        ...


class EndlessTerm:
    """A term that never ends. Site leases last `lease_s` seconds, for the next start after a kill."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s

    def left_s(self) -> float:
        """Return inf."""
        return inf


class LoneAnt:
    """The only ant of a store. It makes the plans, and it reads all counts itself."""

    ants: Final = 1

    def __init__(self, owner: str, *, lease_s: float) -> None:
        self.owner = owner
        self.shared = False
        self.rules = True
        self.counts = True
        self.term = EndlessTerm(lease_s)

    def most_sites(self, stored: float) -> int | None:
        """Return None: this process takes as many sites as it has room for."""
        del stored
        return None

    def idle_since(self) -> float:
        """Return -inf: there is nobody who could be busy."""
        return -inf

    def end_within(self, seconds: float) -> None:
        """Do nothing: there is no server to wait for."""
        del seconds

    def sign_off(self, claimed: Mapping[str, float], *, at: float) -> None:
        """Do nothing: there are no claims."""
        del claimed, at


class NoClaims(Order):
    """The counterpart of the claims on addresses: a process alone claims nothing."""

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
