"""A feed: a list on the server of a store that any client may fill and many processes empty.

One feed carries notes to a crawl, others carry start URLs. A store without a server has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Feed", "FeedEntry", "FeedForm", "Feeds"]

FeedForm = Literal["list", "set", "zset"]
"""Data type of a feed, as in scrapy-redis: a list is emptied from its left, a set in any order, a sorted set from the
highest score.
"""


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
        """Return up to `n` entries. An entry for which `done` is not called before `until` is given to the next caller
        after that time.
        """
        ...

    def done(self, taken: Sequence[FeedEntry]) -> None:
        """Report that the effect of these entries is stored. A second call has no effect."""
        ...

    def waiting(self) -> int:
        """Return the number of entries that are not done."""
        ...


class Feeds(Protocol):
    """The source of feeds of a store."""

    def feed(self, key: str | None = None, form: FeedForm = "list") -> Feed | None:
        """Return the feed under a key of the store's server, by default the feed of notes to the crawl.

        Returns None if the store has no server; then notes are in its folder.
        """
        ...
