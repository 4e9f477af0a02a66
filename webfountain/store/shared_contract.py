"""The part of the store contract for a store on a server, which many processes share: claims, feeds, set-backs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.store.answers import Claim, SetBack

__all__ = ["Claims", "Feed", "FeedEntry", "FeedForm", "Lives", "NoLives", "has_ants"]

FeedForm = Literal["list", "set", "zset"]
"""Data type of a feed, as in scrapy-redis. Entries are taken from the left of a list, in any order from a set, and
highest score first from a sorted set.
"""


class Claims(Protocol):
    """Names that the processes of one crawl claim, and messages ("letters") that they leave for each other.

    A name has the form ``kind/rest``:

    - ``ant/…``: a live process
    - ``role/controller``
    - ``address/…``
    - ``guest/…``: a site from which only a file is requested, without a site lease
    - ``loan/…``: slots of a site that another ant uses
    - ``seeds/…``: a list of seeds that is being loaded
    - ``repository/…``
    - ``unit/…``: a process that has just opened the store with its time period and unit

    A claim lasts until its deadline; its owner extends the claim by claiming again. Each name is claimed in one atomic
    step.
    """

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """Claim the names that are free at the time `at` or that the owner already has. Return the current claim on
        each name, in order.

        `notes` are stored with the claimed names.
        """
        ...

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """Give up names, in one round trip. `names` maps each name to the time from which any process may claim it. The
        call ignores names that belong to other owners.
        """
        ...

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """Return the claim on each name at the time `at`, in order, or None for a free name."""
        ...

    def claims(self, kind: str) -> list[Claim]:
        """Return all claims of one kind, even expired claims, unless they were dropped. Claims of the kinds ``address``
        and ``guest`` cannot be listed.
        """
        ...

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """Leave messages for a process. The server keeps messages for an hour."""
        ...

    def collect(self, owner: str) -> list[bytes]:
        """Return the messages for a process, in order, and delete them."""
        ...

    def time(self) -> float | None:
        """Return the time of the server's clock, UTC seconds, or None without a server."""
        ...

    def end_within(self, seconds: float) -> None:
        """Announce that this process is ending: no step may wait longer than `seconds` for the server from now on."""
        ...


class FeedEntry(NamedTuple):
    """An entry of a feed; `name` is the argument for `done`."""

    name: bytes
    data: bytes


class Feed(Protocol):
    """A list of entries: any client adds entries, and exactly one process takes each entry."""

    def put(self, entries: Sequence[bytes]) -> None:
        """Add entries to the end of the feed."""
        ...

    def take(self, n: int, *, until: float, at: float) -> list[FeedEntry]:
        """Return up to `n` entries. If `done` is not called for an entry before `until`, a later call returns the entry
        again.
        """
        ...

    def done(self, taken: Sequence[FeedEntry]) -> None:
        """Report that the effect of these entries is stored."""
        ...

    def waiting(self) -> int:
        """Return the number of entries that are not done."""
        ...


class Lives(Protocol):
    """The detector of set-backs, in which a store's server loses its latest steps while a process uses the store."""

    def take_set_back(self) -> SetBack | None:
        """Return the report of a loss of steps that was detected since the last call, or None."""
        ...

    def before_loss(self, call: Callable[[], object]) -> None:
        """Register a function to call when the server has lost steps, before this process gives up its sites. The
        function runs in the thread that detects the lost steps.
        """
        ...


class NoLives:
    """Implementation of `Lives` for a store without a server, where no set-back can happen."""

    def take_set_back(self) -> None:
        """Return None."""

    def before_loss(self, call: Callable[[], object]) -> None:
        """Do nothing."""


def has_ants(claims: Claims | None, *, at: float) -> bool:
    """Return whether an ant uses a shared store at the time `at`, or has just opened the store.

    A killed ant counts as alive until its claim expires, at most two heartbeats later.
    """
    if claims is None:
        return False
    return any(claim.owner and claim.until > at for kind in ("ant", "unit") for claim in claims.claims(kind))
