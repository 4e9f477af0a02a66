"""Divide a very large site into windows, of which only one is in memory.

A window contains the pages of one range of keys. If a fetched page is in a window outside memory, only the result of
the fetch is kept in memory. Each window is in memory once every `UrgencyTerms.turnaround_s` seconds, and all windows
stay equally long. Keys are hashes, so each window is a random sample of the site. If many pages of one window change
together, a window outside memory gets higher change rates only when it is loaded.

Most sites have one window, which is always in memory. `kept_sites` saves and loads windows.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.forecast import Belief  # noqa: TC001  (msgspec reads it)
from webfountain.frontier.planning.page_numbers import KEY_BYTES
from webfountain.records import PageRecord

if TYPE_CHECKING:
    from webfountain.frontier.planning.urgency_terms import UrgencyTerms

__all__ = ["AWAY", "WINDOW", "Windows"]

WINDOW: Final = 50_000
"""Largest number of pages in a window. A full window takes about 15 MB during a computation."""
LEAD: Final = 0.25
"""Share of `turnaround_s` by which a window without urgent pages may leave memory early. If windows without urgent
pages stayed for their full time, up to 5 % of the planned fetches would not be made.
"""
AWAY: Final = 20_000
"""If more fetch results than this wait for windows outside memory, the window with the most results is loaded next."""
_MARK: Final = b"windows:"
"""First bytes of the saved data of a site with windows; no msgpack array starts with them."""


class _AbsentVisit(msgspec.Struct, frozen=True, array_like=True):
    """Result of a fetch of a page whose window is not in memory."""

    key: bytes
    record: PageRecord | None
    kind: str
    at: float


class Windows(msgspec.Struct, array_like=True):
    """The windows of a site. Window 1 contains all keys, and windows 2n and 2n + 1 are the halves of window n."""

    hand: int
    others: list[int]
    """The windows outside memory, by number, in the order in which they are loaded."""
    turn_at: float
    """Time at which the next window should be loaded, UTC seconds."""
    taken_at: float
    """Time at which the current window was loaded, UTC seconds."""
    newest: int
    """Number of the last saved window, whose data contain the newest change rates of the site's sections."""
    away: dict[int, list[_AbsentVisit]] = msgspec.field(default_factory=dict)
    """For each window, the results of fetches since the window was last saved."""
    believed: dict[int, Belief | None] = msgspec.field(default_factory=dict)
    """For each window, its estimate in the collection's forecast: how many of its pages are obsolete."""
    waits: dict[bytes, float] = msgspec.field(default_factory=dict)
    """For each due page outside memory, by key, the time when the page was made due.
    """

    @classmethod
    def begun(cls, depth: int, terms: UrgencyTerms, at: float) -> Windows:
        """Return 2^`depth` new windows; the first one is the current window."""
        numbers = [*range(1 << depth, 2 << depth)]
        return cls(numbers[0], numbers[1:], at - terms.turnaround_s, at, numbers[0])

    @classmethod
    def whole(cls) -> Windows:
        """Return a single window, for a site whose pages are all in memory."""
        return cls(1, [], inf, inf, 1)

    @classmethod
    def decode(cls, data: bytes) -> Windows | None:
        """Restore the windows that `encode` wrote. Return None if the data are of a site without windows, or cannot be
        read.
        """
        if not data.startswith(_MARK):
            return None
        try:
            return msgspec.msgpack.decode(data[len(_MARK) :], type=cls)
        except ValueError:
            return None

    def encode(self, believed: Belief | None) -> bytes:
        """Return the data that the store must save with the site. `believed` estimates how many pages of the current
        window are obsolete.
        """
        self.believed[self.hand] = believed
        waits, self.waits = self.waits, {}
        try:
            return _MARK + msgspec.msgpack.encode(self)
        finally:
            self.waits = waits

    @property
    def is_whole(self) -> bool:
        """True if all pages fit into one window, so that they are always in memory."""
        return not self.others

    @property
    def numbers(self) -> list[int]:
        return [self.hand, *self.others]

    def beliefs(self, *of_hand: Belief | None) -> list[Belief]:
        """Return each window's estimate of its obsolete pages. If `of_hand` is given, it replaces the current window's
        stored estimate.
        """
        others = [each for number, each in self.believed.items() if not of_hand or number != self.hand]
        return [each for each in (*others, *of_hand) if each is not None]

    def turn_s(self, terms: UrgencyTerms) -> float:
        return terms.turnaround_s / (1 + len(self.others))

    def is_time(self, terms: UrgencyTerms, at: float) -> bool:
        """Return whether the current window has been in memory for its full time."""
        return at >= max(self.turn_at, self.taken_at + self.turn_s(terms)) or self.is_full()

    def early_at(self, terms: UrgencyTerms) -> float:
        """Return the earliest time at which a window without urgent pages may leave memory, or inf if there is only one
        window.
        """
        return self.turn_at - LEAD * terms.turnaround_s if self.others else inf

    def number_of(self, key: bytes) -> int:
        """Return the number of the window that contains a page."""
        within = int.from_bytes(key, "big") | 1 << 8 * KEY_BYTES
        numbers = {self.hand, *self.others}
        return next(number for bits in range(8 * KEY_BYTES, -1, -1) if (number := within >> bits) in numbers)

    def put_off(self, key: bytes, record: PageRecord | None, kind: str, at: float) -> bool:
        """If the window of a fetched page is not in memory, keep the result of the fetch until the window is loaded,
        and return True."""
        if not self.others or (number := self.number_of(key)) == self.hand:
            return False
        if record is not None:
            record = PageRecord(
                record.url, state=record.state, policy=record.policy, importance=record.importance,
                last_crawled=record.last_crawled, failures=record.failures,
            )  # fmt: skip
        self.away.setdefault(number, []).append(_AbsentVisit(key, record, kind, at))
        self.waits.pop(key, None)
        return True

    def is_full(self) -> bool:
        """Return whether more than `AWAY` fetch results wait for windows outside memory."""
        return sum(len(found) for number, found in self.away.items() if number != self.hand) > AWAY

    def keep_hand(self) -> None:
        """Record that the current window was saved."""
        self.away.pop(self.hand, None)
        self.newest = self.hand

    def turn(self, left: dict[int, Belief | None], waits: dict[bytes, float], terms: UrgencyTerms, at: float) -> int:
        """Choose the next window, make it the current window, and return its number.

        The windows take turns, but if too many fetch results wait (`is_full`), the window with the most results is
        next.

        Parameters
        ----------
        left : the window that ends its turn, or the parts into which it was split, with beliefs
        waits : waiting pages of the window that ends its turn
        """
        self.keep_hand()
        self.newest = next(iter(left))
        self.waits |= waits
        self.believed.pop(self.hand, None)
        self.believed |= left
        fullest = (
            max(self.others, key=lambda number: len(self.away.get(number, ())), default=0) if self.is_full() else 0
        )
        self.others += left
        self.hand = fullest or self.others[0]
        self.others.remove(self.hand)
        turn_s, lead_s = self.turn_s(terms), LEAD * terms.turnaround_s
        self.turn_at = min(max(self.turn_at + turn_s, at - terms.turnaround_s), at + turn_s + lead_s)
        self.taken_at = at
        return self.hand

    def waits_at_hand(self) -> list[tuple[bytes, float]]:
        """Remove and return the due pages of the current window, each with the time when it was made due."""
        keys = [key for key in self.waits if self.number_of(key) == self.hand]
        return [(key, self.waits.pop(key)) for key in keys]
