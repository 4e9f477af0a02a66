"""The part of the store contract for a store on a server, which many processes share: claims, feeds, set-backs.

A store of one process has no claims and no feed, and `NoLives` as its detector of set-backs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.store.answers import Claim, SetBack

__all__ = ["Claims", "Feed", "FeedEntry", "FeedForm", "Lives", "NoLives", "has_ants"]

FeedForm = Literal["list", "set", "zset"]
"""Data type of a feed, as in scrapy-redis. Entries are taken from the left of a list, from a set in any order, and from
a sorted set by the highest score first.
"""


class Claims(Protocol):
    """Names that the processes of one crawl claim, and letters that they leave for each other.

    A name is ``kind/rest``:

    - ``ant/…``: a live process
    - ``role/controller``
    - ``address/…``
    - ``guest/…``: a site from which only a file is requested, without a site lease
    - ``loan/…``: slots of a site that another ant uses
    - ``seeds/…``: a list of seeds that is being loaded
    - ``repository/…``
    - ``unit/…``: a process that has just opened the store with its time period and unit

    A claim lasts until its time; its owner extends it by claiming again. Each name is claimed in one atomic step.
    """

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """Claim each name that is free, that has an expired claim at the time `at`, or that the owner already has.
        Return the claim that each name now has, in order.

        `notes` are stored with the names that are taken. One round trip. A second call extends the claims.
        """
        ...

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """Give up names. Any process may claim each name from the time given for it. Names of other owners stay. One
        round trip.
        """
        ...

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """Return the claim on each name at the time `at`, in order; None for a name without an owner. One round
        trip.
        """
        ...

    def claims(self, kind: str) -> list[Claim]:
        """Return all claims of a kind that were not dropped, including expired ones. The kinds ``address`` and
        ``guest`` cannot be listed.
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
        """Announce that this process is ending: from now on, no step waits longer than `seconds` for a server that does
        not answer.
        """
        ...


class FeedEntry(NamedTuple):
    """An entry of a feed, and the name under which `done` is called for it."""

    name: bytes
    data: bytes


class Feed(Protocol):
    """Entries that any client adds and many processes take, each entry by one process."""

    def put(self, entries: Sequence[bytes]) -> None:
        """Add entries at the end."""
        ...

    def take(self, n: int, *, until: float, at: float) -> list[FeedEntry]:
        """Return up to `n` entries. If `done` is not called for an entry before `until`, a later caller gets that
        entry.
        """
        ...

    def done(self, taken: Sequence[FeedEntry]) -> None:
        """Report that the effect of these entries is stored. A second call has no effect."""
        ...

    def waiting(self) -> int:
        """Return the number of entries that are not done."""
        ...


class Lives(Protocol):
    """The detector of set-backs: the server of a store may lose its latest steps while a process uses it."""

    def take_set_back(self) -> SetBack | None:
        """Return the set-back that was detected since the last call, or None. Any step may detect one."""
        ...

    def before_loss(self, call: Callable[[], object]) -> None:
        """Register a function that is called before sites are given up after a loss, in the thread that detects the
        loss."""
        ...


class NoLives:
    """The `Lives` of a store without a server, where no set-back can happen."""

    def take_set_back(self) -> None:
        """Return None: there is no set-back."""

    def before_loss(self, call: Callable[[], object]) -> None:
        """Do nothing, because no loss can happen."""


def has_ants(claims: Claims | None, *, at: float) -> bool:
    """Return whether an ant of a shared store is alive at a time, or has just opened the store.

    A killed ant counts until its claim expires, after at most two heartbeats.
    """
    if claims is None:
        return False
    return any(claim.owner and claim.until > at for kind in ("ant", "unit") for claim in claims.claims(kind))
