"""The other ants, as the rest of the frontier sees them: a `Membership` among several ants, or a `LoneAnt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LeaseTerm", "Others"]


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
