"""Windows of a very large site: each has the pages in one range of keys, and one window is in memory at a time.

The `UrgentSite` has the pages of the current window. For every other window, only the results of visits since its last
turn are kept. Each window is saved separately. All have turns of the same length, one in each
`UrgencyTerms.turnaround_s`. Keys are spread evenly, so each window is a sample of the site. With equal turns, one price
divides the budget among windows as it would among all pages. Knowledge about sections and releases belongs to the whole
site and is passed from window to window. A page's own evidence belongs to its window: if a release shows in one window,
it affects the pages of another window at that window's next turn.

Most sites have one window, which is always in memory. `kept_sites` exchanges windows.
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
"""Largest number of pages of a site that are in memory and computed at once: about 15 MB with intermediate results.
Smaller windows would be exchanged more often, and each turn would have fewer fetches: about one in 36 of a window's
pages is fetched in a turn.
"""
LEAD: Final = 0.25
"""A window without urgent pages may end its turn early, by at most this share of a turnaround. The number of urgent
pages varies by chance. Without this rule the price followed these variations, and up to 5 % of the fetches were not
made. A share of one half gained nothing more.
"""
AWAY: Final = 20_000
"""Largest number of visits that are kept for windows that are not in memory. Above it, the window with most of these
visits has its turn."""
_MARK: Final = b"windows:"
"""First bytes of the saved data of a site with windows; no msgpack array starts with them."""


class _AbsentVisit(msgspec.Struct, frozen=True, array_like=True):
    """Result of a visit to a page whose window is not in memory. Without a record, the page is no candidate."""

    key: bytes
    record: PageRecord | None
    kind: str
    at: float


class Windows(msgspec.Struct, array_like=True):
    """The windows of a site, by number: 1 contains all keys, 2n and 2n + 1 are the lower and the upper half of n."""

    hand: int
    others: list[int]
    """The windows that are not in memory, the next one first."""
    turn_at: float
    """Time of the next turn. Turns that were missed are made up for when windows have no urgent pages."""
    taken_at: float
    """Start of the current turn."""
    newest: int
    """The window that was saved with the newest knowledge about the site's sections."""
    away: dict[int, list[_AbsentVisit]] = msgspec.field(default_factory=dict)
    """For each window, the visits to its pages since it was last in memory, or last saved."""
    believed: dict[int, Belief | None] = msgspec.field(default_factory=dict)
    """Beliefs about each window, as counted in the collection's forecast."""
    waits: dict[bytes, float] = msgspec.field(default_factory=dict)
    """Pages of other windows that were made due and not fetched yet, each with the time since when."""

    @classmethod
    def begun(cls, depth: int, terms: UrgencyTerms, at: float) -> Windows:
        """Return 2^`depth` windows; none of them had a turn yet."""
        numbers = [*range(1 << depth, 2 << depth)]
        return cls(numbers[0], numbers[1:], at - terms.turnaround_s, at, numbers[0])

    @classmethod
    def whole(cls) -> Windows:
        """Return the single window of a site that is in memory as a whole."""
        return cls(1, [], inf, inf, 1)

    @classmethod
    def decode(cls, data: bytes) -> Windows | None:
        """Restore the output of `encode`. Return None if the data cannot be read, or are those of a site that is in
        memory as a whole.
        """
        if not data.startswith(_MARK):
            return None
        try:
            return msgspec.msgpack.decode(data[len(_MARK) :], type=cls)
        except ValueError:
            return None

    def encode(self, believed: Belief | None) -> bytes:
        """Return the data to save with the site; `believed` is the current window's. Waiting pages are not saved: they
        are made due again.
        """
        self.believed[self.hand] = believed
        waits, self.waits = self.waits, {}
        try:
            return _MARK + msgspec.msgpack.encode(self)
        finally:
            self.waits = waits

    @property
    def is_whole(self) -> bool:
        """Return whether there is only one window, which is always in memory."""
        return not self.others

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of all windows."""
        return [self.hand, *self.others]

    def beliefs(self, *of_hand: Belief | None) -> list[Belief]:
        """Return the beliefs about each window for the collection's forecast. For the current window, `of_hand` is
        newer than what was saved.
        """
        others = [each for number, each in self.believed.items() if not of_hand or number != self.hand]
        return [each for each in (*others, *of_hand) if each is not None]

    def turn_s(self, terms: UrgencyTerms) -> float:
        """Return the length of a turn, s."""
        return terms.turnaround_s / (1 + len(self.others))

    def is_time(self, terms: UrgencyTerms, at: float) -> bool:
        """Return whether the next window should have its turn, even if the current one has urgent pages."""
        return at >= max(self.turn_at, self.taken_at + self.turn_s(terms)) or self.is_full()

    def early_at(self, terms: UrgencyTerms) -> float:
        """Return when the next window has its turn if the current one has no urgent pages; inf if there is only one
        window."""
        return self.turn_at - LEAD * terms.turnaround_s if self.others else inf

    def number_of(self, key: bytes) -> int:
        """Return the number of the window that contains a page."""
        within = int.from_bytes(key, "big") | 1 << 8 * KEY_BYTES
        numbers = {self.hand, *self.others}
        return next(number for bits in range(8 * KEY_BYTES, -1, -1) if (number := within >> bits) in numbers)

    def put_off(self, key: bytes, record: PageRecord | None, kind: str, at: float) -> bool:
        """Keep the result of a visit for the turn of the page's window, if this window is not in memory. Return whether
        the result was kept.
        """
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
        """Return whether too many visits are kept for other windows."""
        return sum(len(found) for number, found in self.away.items() if number != self.hand) > AWAY

    def keep_hand(self) -> None:
        """Record that the current window was saved in its current state."""
        self.away.pop(self.hand, None)
        self.newest = self.hand

    def turn(self, left: dict[int, Belief | None], waits: dict[bytes, float], terms: UrgencyTerms, at: float) -> int:
        """Make another window the current one: the next, or the one with most kept visits. Return its number.

        Parameters
        ----------
        left : the window that ends its turn, or the parts into which it was split, with beliefs; all are saved already
        waits : pages of this window that were made due, with the time
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
        """Remove the pages of the current window from `waits`, and return them with their times."""
        keys = [key for key in self.waits if self.number_of(key) == self.hand]
        return [(key, self.waits.pop(key)) for key in keys]
