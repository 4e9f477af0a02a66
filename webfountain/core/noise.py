"""Learn which places of a page are noise, such as clocks, adverts, counters and shuffled lists.

A place is the position of a line in the page (`formats.page_units`). A place is noise if

- it differed between two visits seconds apart, on this page or at the same place of another page of the site; or
- it differed at each of the last `STREAK` comparisons, and was never tried by two visits seconds apart; or
- its differences are undone as often as they stay, such as those of a banner that is in some answers only.

The third rule: a server may draw a block anew for each answer. After a difference, such a server brings back the former
block as often as it repeats the new one. Authors rarely undo what they wrote. The next comparison shows whether a
difference was undone or stayed. A place counts as drawn if at least `UNDONE` differences were undone, and at most twice
as many stayed. A place that was the same at `TRIES` visits seconds apart is not drawn, because an author may undo a
block, too.

A line that is inserted into an element only moves the lines below it. The inserted line counts as a change, unless its
place or its element is noise.

An element whose lines mostly differ is a place, too, such as a shuffled list. A place is no longer noise after `REST`
equal comparisons in a row (`REST_OF_DRAWN` if a difference was undone). Only places that differed recently are stored,
at most `MAX_PLACES` per page.

Source: the idea comes from template detection by comparing versions (Fetterly et al. 2003, section 4.3: most changes of
frequently changing pages are in markup and adverts). The rules are our own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from webfountain.core.text_diff import edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "MAX_PLACES",
    "REST",
    "REST_OF_DRAWN",
    "STREAK",
    "TRIES",
    "UNDONE",
    "UNDONE_ON_SITE",
    "Difference",
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
"""Largest number of places that are stored per page."""
STREAK: Final = 3
REST: Final = 2
TRIES: Final = 3
"""Number of visits seconds apart without a difference that prove that a place is not noise."""
UNDONE: Final = 2
"""Number of undone differences on a page from which a place counts as drawn."""
UNDONE_ON_SITE: Final = 3
"""Number of undone differences on a site from which a place counts as drawn."""
REST_OF_DRAWN: Final = 10
"""Number of successive comparisons without a difference after which a drawn place is no longer noise."""
_STAYED_PER_UNDONE: Final = 2
"""Largest number of differences that stayed, per undone difference."""
_LIST: Final = 3
"""Smallest number of lines of an element that can be noise as a whole."""
_SAMPLE: Final = 40
"""Number of characters of a line that are stored for display."""


class NoisyPlace(msgspec.Struct, frozen=True, array_like=True):
    """A place that differed at one of the last comparisons.

    `streak`: number of comparisons in a row at which it differed. `rested`: number of comparisons in a row at which it
    was the same. `tried`: number of visits that came seconds after another visit. `confirmed`: True if it differed at
    one of these visits, or if differences on its site are draws. `sample`: the beginning of its newest line. `former`:
    digest of the text before the last difference. `undone`, `stayed`: number of differences that the next comparison
    undid, or did not.
    """

    place: int
    streak: int = 0
    rested: int = 0
    tried: int = 0
    confirmed: bool = False
    sample: str = ""
    former: int = 0
    undone: int = 0
    stayed: int = 0

    @property
    def is_noise(self) -> bool:
        """Return whether differences at the place do not count as changes."""
        return self.confirmed or self.is_drawn(UNDONE) or (not self.tried and self.streak >= STREAK)

    @property
    def is_decided(self) -> bool:
        """Return whether another visit seconds apart would show nothing new."""
        return self.confirmed or self.tried >= TRIES

    @property
    def is_stored(self) -> bool:
        """Return whether the place differed recently."""
        return self.rested < (REST_OF_DRAWN if self.undone else REST)

    def is_drawn(self, least: int) -> bool:
        """Return whether the server draws this place anew for each answer; `least` is the required number of undone
        differences."""
        return self.undone >= least and self.stayed <= _STAYED_PER_UNDONE * self.undone and self.tried < TRIES


def decode(data: bytes) -> list[NoisyPlace]:
    """Return the places stored in a page's record; none if the data cannot be read."""
    try:
        return msgspec.msgpack.decode(data, type=list[NoisyPlace]) if data else []
    except msgspec.DecodeError:
        return []


def encode(places: Sequence[NoisyPlace]) -> bytes:
    return msgspec.msgpack.encode(places) if places else b""


def noise_of(places: Iterable[NoisyPlace]) -> frozenset[int]:
    """Return the places that are noise."""
    return frozenset(each.place for each in places if each.is_noise)


class Difference(NamedTuple):
    """A difference at a place.

    - `line`: the newest line of the place
    - `before`, `now`: digests of the text before and now; 0 for nothing
    - `around`: the place of the element around it; 0 if the place is an element
    """

    line: str
    before: int
    now: int
    around: int = 0


class Differences(NamedTuple):
    """Differences between two copies.

    `held` contains all places of the new copy. `unclear` places are neither different nor equal: moved lines, and
    elements in which some lines differ.
    """

    old: frozenset[int]
    new: frozenset[int]
    places: Mapping[int, Difference]
    held: frozenset[int]
    unclear: frozenset[int]


def differences_of(old: Sequence[Line], new: Sequence[Line]) -> Differences:
    """Compare the lines of two copies. A line that only moved counts as equal."""
    changed_old: set[int] = set()
    changed_new: set[int] = set()
    for edit in edits([each[1] for each in old], [each[1] for each in new]):
        changed_old.update(range(edit.old_from, edit.old_to))
        changed_new.update(range(edit.new_from, edit.new_to))
    before, now = ({each[0]: each[1] for each in lines} for lines in (old, new))
    around = {lines[i][0]: lines[i][2] for lines, changed in ((old, changed_old), (new, changed_new)) for i in changed}
    gone, come = {old[i][0] for i in changed_old}, {new[i][0] for i in changed_new}
    # A place differs if its line was replaced, or if it is in one copy only.
    differing = (gone & come) | (gone - now.keys()) | (come - before.keys())
    places = {
        place: Difference(
            now.get(place) or before[place], _digest(before.get(place)), _digest(now.get(place)), around[place]
        )
        for place in differing
    }
    elements = {
        each for lines, changed in ((old, changed_old), (new, changed_new)) for each in _mostly_changed(lines, changed)
    }
    if elements:
        contents = [_contents(lines, elements) for lines in (old, new)]
        for each in elements:
            was, has = (content.get(each) for content in contents)
            line = (has or was or "").partition("\n")[0]
            places[each] = Difference(line, _digest(was), _digest(has))
    places.pop(0, None)  # lines that always count have no place
    held = frozenset(place for each in new for place in (each[0], each[2]))
    unclear = {place for place, line in now.items() if before.get(place, line) != line} | set(around.values())
    return Differences(frozenset(changed_old), frozenset(changed_new), places, held, frozenset(unclear - places.keys()))


def _mostly_changed(lines: Sequence[Line], changed: set[int]) -> list[int]:
    """Return the elements in which most lines differ."""
    sizes = Counter(each[2] for each in lines)
    return [each for each, n in Counter(lines[i][2] for i in changed).items() if n >= _LIST and 2 * n >= sizes[each]]


def _contents(lines: Sequence[Line], elements: set[int]) -> dict[int, str]:
    """Return the text of elements."""
    found: dict[int, list[str]] = {}
    for each in lines:
        if each[2] in elements:
            found.setdefault(each[2], []).append(each[1])
    return {each: "\n".join(texts) for each, texts in found.items()}


def _digest(text: str | None) -> int:
    """Return a digest of the text at a place; 0 for nothing."""
    return 0 if text is None else crc32(text.encode("utf-8", "replace")) or 1


def without_noise(lines: Sequence[LineT], differing: frozenset[int], noise: frozenset[int]) -> list[LineT]:
    """Return the lines, without the differing lines at noisy places."""
    return [
        each
        for number, each in enumerate(lines)
        if number not in differing or not each[0] or (each[0] not in noise and each[2] not in noise)
    ]


def observed(
    places: Sequence[NoisyPlace],
    differences: Differences | None,
    *,
    seconds_apart: bool,
    of_site: Mapping[int, NoisyPlace],
) -> list[NoisyPlace]:
    """Return the places after one more comparison.

    Parameters
    ----------
    differences : None if the new copy was not read, because it is the same
    seconds_apart : True if the two visits were so close that nobody would have written anything between them
    of_site : places on pages of the site that were tried by visits seconds apart
    """
    known = {each.place: each for each in places}
    differing = {} if differences is None else differences.places
    found = []
    for place, each in known.items():
        if place not in differing:
            is_unclear = differences is not None and place in differences.unclear
            # If neither visit showed a banner, the two visits prove nothing about the banner.
            is_absent = differences is not None and place not in differences.held
            is_unproved = seconds_apart and (is_absent or is_unclear)
            found.append(each if is_unproved else _rested(each, seconds_apart, is_judged=not is_unclear))
    for place, difference in differing.items():
        before, other = known.get(place, NoisyPlace(place)), of_site.get(place, NoisyPlace(place))
        is_undone = before.streak > 0 and before.former == difference.now
        found.append(
            NoisyPlace(
                place,
                streak=min(before.streak + 1, 255),
                tried=min(max(before.tried, other.tried) + seconds_apart, TRIES),
                confirmed=seconds_apart or before.confirmed or other.confirmed,
                sample=difference.line[:_SAMPLE],
                former=difference.before,
                undone=before.undone + is_undone,
                stayed=before.stayed,
            )
        )
    return sorted(found, key=_worth, reverse=True)[:MAX_PLACES]


def _rested(place: NoisyPlace, seconds_apart: bool, *, is_judged: bool) -> NoisyPlace:
    if seconds_apart and not place.confirmed:
        # Two visits seconds apart prove only that the place is not a clock.
        return msgspec.structs.replace(place, tried=min(place.tried + 1, TRIES))
    stayed = place.stayed + (is_judged and place.streak > 0)
    return msgspec.structs.replace(place, streak=0, rested=place.rested + 1, stayed=stayed)


def _worth(place: NoisyPlace) -> tuple[bool, int, int]:
    """Return a sort key that puts noisy places first."""
    return place.is_noise, place.streak, -place.rested
