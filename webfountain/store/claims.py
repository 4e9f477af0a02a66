"""Claims: names of which each belongs to one process of a crawl at a time. Only a store for many processes has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.store.answers import Claim

__all__ = ["Claims"]


class Claims(Protocol):
    """Names that the processes of one crawl claim, and letters that they leave for each other.

    A name is ``kind/rest``:

    - ``ant/…``: a live process
    - ``role/controller``
    - ``address/…``
    - ``guest/…``: a site of which only a file is requested, without a site lease
    - ``loan/…``: slots of a site that another ant uses
    - ``seeds/…``: a list of seeds that is being loaded
    - ``repository/…``
    - ``unit/…``: a process that has just opened the store with its time period and unit

    A claim lasts until its time; if the owner claims again, it is extended. Each name is one atomic step.
    """

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """Claim each name that is free, whose claim has expired at `at`, or that the owner already has; return the
        present owner of each, in order.

        `notes` are stored with the names that are taken. One round trip. A second call extends the claims.
        """
        ...

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """Give up names: any process may claim each of them from its time on. Names of other owners stay. One round
        trip.
        """
        ...

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """Return the claim on each name at the time `at`, in order; None for one without an owner. One round trip."""
        ...

    def claims(self, kind: str) -> list[Claim]:
        """Return all claims of a kind that were not dropped, including expired ones. It does not work for addresses
        and guests.
        """
        ...

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """Leave letters for a process; they are kept for an hour."""
        ...

    def collect(self, owner: str) -> list[bytes]:
        """Return the letters that were left for a process, in order, and delete them."""
        ...

    def time(self) -> float | None:
        """Return the time of the server's clock, UTC seconds, or None without a server. One round trip."""
        ...

    def end_within(self, seconds: float) -> None:
        """Announce that this process is ending: from now on, no step waits longer than this for a server that does not
        answer.
        """
        ...
