"""The counterpart of a membership for a process that has its store to itself: nobody must be waited for."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.order import Order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.frontier.batch import Batch
    from webfountain.store.answers import Claim

__all__ = ["EndlessTerm", "LoneAnt", "NoClaims"]


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
