"""Address groups: the active sites behind one address, each with its place in the group.

A group is a member of the ring of addresses, and itself has a ring. The members of that ring are the sequencers of its
sites (`ring.Tier`). `addresses` puts sites into groups. A site's requests contain the address of its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webfountain.records import Fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.frontier.sites.gate import GatedSequencer
    from webfountain.frontier.sites.ring import Tier
    from webfountain.records import FetchKind

__all__ = ["AddressGroup", "Place"]


class AddressGroup:
    """The active sites behind one address, or a single site if addresses are ignored (`per_ip = false`)."""

    __slots__ = ("address", "gate", "is_leaving", "is_lent", "is_ours", "key", "places", "turns")

    def __init__(
        self,
        key: str,
        address: str,
        turns: Tier[Fetch],
        *,
        is_ours: bool,
        is_lent: bool = False,
    ) -> None:
        self.key = key
        self.address = address
        self.is_ours = is_ours
        """True if this ant may send requests to the address."""
        self.is_lent = is_lent
        """True if the ant that holds the address lends its slots to this ant."""
        self.is_leaving = False
        """True if the address goes to another ant: no new request is sent, and its sites are parked as soon as
        possible.
        """
        self.places: dict[Place, None] = {}
        self.turns = turns
        self.gate = turns.gate


class Place:
    """The place of one site: its address group, and the other addresses of its host.

    `sequencer` returns the site's next request, if its gate allows. `numbers` counts all requests of the crawl.
    """

    __slots__ = ("_numbers", "fallbacks", "group", "name", "sequencer")

    def __init__(self, name: str, sequencer: GatedSequencer[Fetch], numbers: Iterator[int]) -> None:
        self.name = name
        self.sequencer = sequencer
        self._numbers = numbers
        self.group: AddressGroup | None = None
        """None until the site's host is resolved."""
        self.fallbacks: tuple[str, ...] = ()
        """Other addresses of the host, in the order in which they are tried if the address of `group` does not answer.
        """

    def move(self, group: AddressGroup, fallbacks: tuple[str, ...]) -> None:
        """Move to another address of the host."""
        self.group, self.fallbacks = group, fallbacks

    def wake(self) -> None:
        """Make the group read again when the site is available, and whether it has urgent requests."""
        if self.group is not None:
            self.group.turns.wake(self.sequencer)

    def is_leaving(self) -> bool:
        """Return whether the site's address goes to another ant."""
        return self.group is not None and self.group.is_leaving

    def request(self, kind: FetchKind, url: str, **more: Any) -> Fetch:
        """Return a request of the site to its address, with a unique number."""
        address = None if self.group is None else self.group.address
        return Fetch(next(self._numbers), kind, url, self.name, address, fallbacks=self.fallbacks, **more)
