"""Who holds what: leases, their deadlines, the immediate queue's order. All of it in memory.

A lease only hides its page's queue entry, so a process that dies gives everything back by dying. Tokens carry
the number of the store's opening in their upper bits: one of before a crash is unknown ever after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webfountain.records import Lease

if TYPE_CHECKING:
    from webfountain.records import PageRecord
    from webfountain.store.embedded.pages import Place

__all__ = ["Held", "Leases"]

_GENERATION_BITS: Final = 40
"""10^12 leases an opening."""


@dataclass(slots=True)
class Held:
    """A lease that is out: where its page stands, until when, its place on the immediate queue if it came from there.

    `place.record` is the record as it is now, `handed` the one that was handed out: a copy can move meanwhile.
    """

    place: Place
    handed: PageRecord
    until: float
    immediate: int | None


class Leases:
    """The leases that are out, the immediate queue, and the queue entries that both hide."""

    def __init__(self, generation: int) -> None:
        self.hidden: set[bytes] = set()
        self._token = generation << _GENERATION_BITS
        self._held: dict[int, Held] = {}
        self._waiting: dict[int, Place] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def waiting(self) -> int:
        """URLs on the immediate queue."""
        return len(self._waiting)

    def get(self, token: int) -> Held | None:
        """The lease of a token, None when it is not out."""
        return self._held.get(token)

    def hold(self, place: Place, until: float, *, immediate: int | None) -> Lease:
        """Hand a page out, from its place on the immediate queue if it has one."""
        if immediate is not None:
            del self._waiting[immediate]
        self._token += 1
        self._held[self._token] = Held(place, place.record, until, immediate)
        self.hidden.add(place.entry)
        return Lease(self._token, place.site, place.key, place.record)

    def wait(self, number: int, place: Place) -> None:
        """Put a page on the immediate queue at a numbered place."""
        self._waiting[number] = place
        self.hidden.add(place.entry)

    def first_waiting(self, n: int) -> list[tuple[int, Place]]:
        """Up to `n` pages of the immediate queue, with their numbers, in order; `hold` takes them off it."""
        return [(number, self._waiting[number]) for number in sorted(self._waiting)[:n]]

    def end(self, token: int) -> None:
        """The lease is settled: its entry is gone from the queue."""
        self.hidden.discard(self._held.pop(token).place.entry)

    def give_back(self, token: int) -> None:
        """The page returns to where it was leased from; an unknown token has no effect."""
        held = self._held.pop(token, None)
        if held is None:
            return
        self.hidden.discard(held.place.entry)
        if held.immediate is not None:
            self.wait(held.immediate, held.place)

    def late(self, at: float) -> list[int]:
        """Tokens of the leases that ran out at or before `at`."""
        return [token for token, held in self._held.items() if held.until <= at]

    def first_until(self) -> dict[str, float]:
        """For each site with leases out when the first of them runs out."""
        untils: dict[str, float] = {}
        for held in self._held.values():
            site = held.place.site
            untils[site] = min(held.until, untils.get(site, held.until))
        return untils

    def follow(self, entry: bytes, record: PageRecord) -> None:
        """The record behind a queue entry changed while it was out or waiting."""
        if entry in self.hidden:
            for place in self._places():
                if place.entry == entry:
                    place.record = record

    def immediate_places(self, site: str | None = None, key: bytes | None = None) -> list[int]:
        """Numbers on the immediate queue, waiting or leased from there: all, a site's, or a page's."""
        leased = [held.immediate for held in self._held.values() if _is_of(held.place, site, key)]
        waiting = [number for number, place in self._waiting.items() if _is_of(place, site, key)]
        return waiting + [number for number in leased if number is not None]

    def drop(self, site: str, key: bytes | None) -> None:
        """Forget a page or all of a site: their leases are lost, they wait no more."""
        self.hidden.difference_update([place.entry for place in self._places() if _is_of(place, site, key)])
        self._held = {token: held for token, held in self._held.items() if not _is_of(held.place, site, key)}
        self._waiting = {number: place for number, place in self._waiting.items() if not _is_of(place, site, key)}

    def _places(self) -> list[Place]:
        return [*self._waiting.values(), *(held.place for held in self._held.values())]


def _is_of(place: Place, site: str | None, key: bytes | None) -> bool:
    return (site is None or place.site == site) and (key is None or place.key == key)
