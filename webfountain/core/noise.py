"""Learn which places of a page are noise, such as clocks, adverts, counters and rotating lists.

Place in the walk: with the verdict of a new body (`frontier.pages`). A place is the position of a line in the page
(`formats.page_units`). A place is noise if

- it differed between two visits seconds apart, on this page or at the same place of another page of the site; or
- it differed at each of the last `STREAK` comparisons, and was never tried by two visits seconds apart.

If most lines of an element differ, the element is a place, too: a shuffled list differs as a whole. A place is no
longer noise after it was the same at `REST` comparisons in a row. Only places that differed recently are stored, at
most `MAX_PLACES` per page.

Source: the idea comes from template detection by comparing versions (Fetterly et al. 2003, section 4.3: most changes of
frequently changing pages are in markup and adverts). The rules are our own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from webfountain.core.text_diff import edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "MAX_PLACES",
    "REST",
    "STREAK",
    "TRIES",
    "Differences",
    "NoisyPlace",
    "decode",
    "differences_of",
    "encode",
    "noise_of",
    "observed",
    "without_noise",
]

Line = tuple[int, str, int, str]
"""A line: its place, its text, the place of its element, and its form in a diff."""
LineT = TypeVar("LineT", bound=Line)
MAX_PLACES: Final = 32
"""Largest number of places that are stored per page. If there are more, those with the longest streaks stay."""
STREAK: Final = 3
REST: Final = 2
TRIES: Final = 3
"""Number of visits seconds apart after which a place that never differed at them is known not to be noise."""
_LIST: Final = 3
"""Smallest number of lines of an element that may be noise as a whole."""
_SAMPLE: Final = 40
"""Number of characters of a line that are stored, to show the line."""


class NoisyPlace(msgspec.Struct, frozen=True, array_like=True):
    """A place that differed at one of the last comparisons.

    `streak`: number of comparisons in a row at which it differed. `rested`: number of comparisons in a row at which it
    was the same. `tried`: number of visits that came seconds after another visit. `confirmed`: True if it differed at
    one of these visits. `sample`: the beginning of its newest line.
    """

    place: int
    streak: int = 0
    rested: int = 0
    tried: int = 0
    confirmed: bool = False
    sample: str = ""

    @property
    def is_noise(self) -> bool:
        """Return whether differences at the place do not count as changes."""
        return self.confirmed or (not self.tried and self.streak >= STREAK)

    @property
    def is_decided(self) -> bool:
        """Return whether further visits seconds apart would prove nothing."""
        return self.confirmed or self.tried >= TRIES


def decode(data: bytes) -> list[NoisyPlace]:
    """Return the places that are stored in a page's record; none if the data cannot be read."""
    try:
        return msgspec.msgpack.decode(data, type=list[NoisyPlace]) if data else []
    except msgspec.DecodeError:
        return []


def encode(places: Sequence[NoisyPlace]) -> bytes:
    """Return places as they are stored in a page's record."""
    return msgspec.msgpack.encode(places) if places else b""


def noise_of(places: Iterable[NoisyPlace]) -> frozenset[int]:
    """Return the places that are noise."""
    return frozenset(each.place for each in places if each.is_noise)


class Differences(NamedTuple):
    """The differences between two copies.

    They are the numbers of the differing lines of each copy, and the places of these lines with the newest line at each
    place. `held` contains all places of the new copy.
    """

    old: frozenset[int]
    new: frozenset[int]
    places: Mapping[int, str]
    held: frozenset[int]


def differences_of(old: Sequence[Line], new: Sequence[Line]) -> Differences:
    """Compare the lines of two copies. A line that only moved down, because of a new line above it, does not differ."""
    changed_old: set[int] = set()
    changed_new: set[int] = set()
    for edit in edits([each[1] for each in old], [each[1] for each in new]):
        changed_old.update(range(edit.old_from, edit.old_to))
        changed_new.update(range(edit.new_from, edit.new_to))
    places = {old[i][0]: old[i][1] for i in changed_old} | {new[i][0]: new[i][1] for i in changed_new}
    for lines, changed in ((old, changed_old), (new, changed_new)):
        sizes = Counter(each[2] for each in lines)
        many = Counter(lines[i][2] for i in changed)
        first = {lines[i][2]: lines[i][1] for i in sorted(changed, reverse=True)}
        places |= {each: first[each] for each, n in many.items() if n >= _LIST and 2 * n >= sizes[each]}
    places.pop(0, None)  # lines that always count have no place
    held = frozenset(place for each in new for place in (each[0], each[2]))
    return Differences(frozenset(changed_old), frozenset(changed_new), places, held)


def without_noise(lines: Sequence[LineT], differing: frozenset[int], noise: frozenset[int]) -> list[LineT]:
    """Return the lines, except those that differ and are at a place that is noise."""
    return [
        each
        for number, each in enumerate(lines)
        if number not in differing or not each[0] or (each[0] not in noise and each[2] not in noise)
    ]


def observed(
    places: Sequence[NoisyPlace],
    differences: Mapping[int, str],
    *,
    held: frozenset[int] | None,
    seconds_apart: bool,
    of_site: Mapping[int, NoisyPlace],
) -> list[NoisyPlace]:
    """Return the places after one more comparison.

    Parameters
    ----------
    differences : places that differed, with their newest lines
    held : places of the new copy; None if it was not read, because it is the same
    seconds_apart : True if the two visits were so close that nobody would have written anything between them
    of_site : places on pages of the site that were tried by visits seconds apart
    """
    known = {each.place: each for each in places}
    found = []
    for place, each in known.items():
        if place not in differences:
            # If neither visit showed a banner, the two visits prove nothing about the banner.
            is_absent = seconds_apart and held is not None and place not in held
            found.append(each if is_absent else _rested(each, seconds_apart))
    for place, line in differences.items():
        before, other = known.get(place, NoisyPlace(place)), of_site.get(place, NoisyPlace(place))
        tried = min(max(before.tried, other.tried) + seconds_apart, TRIES)
        confirmed = seconds_apart or before.confirmed or other.confirmed
        found.append(NoisyPlace(place, min(before.streak + 1, 255), 0, tried, confirmed, line[:_SAMPLE]))
    return sorted(found, key=_worth, reverse=True)[:MAX_PLACES]


def _rested(place: NoisyPlace, seconds_apart: bool) -> NoisyPlace:
    """Return a place that was the same at this comparison."""
    if seconds_apart and not place.confirmed:
        # Two visits seconds apart prove only that the place is not a clock.
        return msgspec.structs.replace(place, tried=min(place.tried + 1, TRIES))
    return msgspec.structs.replace(place, streak=0, rested=place.rested + 1)


def _worth(place: NoisyPlace) -> tuple[bool, int, int]:
    """Return a sort key that puts first the places to keep: noise."""
    return place.is_noise, place.streak, -place.rested
