"""Learn which parts of a site's pages are noise, such as clocks, adverts, counters, banners and shuffled lists.

A part of a page is a position, an order or a line (`line_differences`). After a part has differed, the next comparison
of the page shows whether the part differed *again* or *rested* (stayed the same). A part that only its author edits
usually stays the same at the next comparison. One difference does not prove that a part is noise, even between two
visits a few seconds apart. For each part, the results of all pages of a site are added up.

- A *line* that a server draws for each answer is undone as often as it stays, whatever its share of the answers is.
  Authors rarely undo what they wrote. A line that is noise hides no other edit, because an edit has another text.
- A *position* that is noise hides whatever stands there, and an *order* hides each move inside its element. So they are
  noise only if they differ at nearly each comparison. A page that its authors edit every day does so, too. Two visits
  seconds apart tell it from a clock.

Equal differences of many pages, such as a notice on all pages, are one act of an author and count once.

Sources: Wald 1945, "Sequential Tests of Statistical Hypotheses" (scores are logarithms of likelihood ratios). The idea
of noise comes from template detection by comparing versions (Fetterly et al. 2003, section 4.3: most changes of
frequently changing pages are in markup and adverts). The rules for noise are our own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.line_differences import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.core.line_differences import Difference, Differences

__all__ = ["MAX_PARTS", "Evidence", "PagePart", "SiteNoise", "decode", "encode"]

MAX_PARTS: Final = 64
"""Largest number of parts that are stored per page."""
MAX_PARTS_OF_SITE: Final = 512
TRIES: Final = 3
"""A part causes no more extra visits once this many visits a few seconds apart have found it unchanged."""
REST: Final = 10
"""After this many comparisons without a difference, a noisy part is dropped from the page's record."""
_SAMPLE: Final = 40
"""A stored sample of a noisy line has at most this many characters."""


_OF_LINES: Final = (3, -1, 30)
"""What a new difference adds to a line's score, what no difference adds, and the largest score. A noisy line differs
again with probability .5, a line written by an author with probability .1.
"""
_OF_POSITIONS: Final = (2, -3, 20)
"""What a new difference adds to the score of a position or order, what no difference adds, and the largest score. A
noisy position differs again with probability .85, any other position with probability .3.
"""
_LEAST: Final = -30
"""Smallest score."""
_DRAWN_LINE: Final = 6
"""A line with at least this score is noise."""
_DRAWN_LINES: Final = 12
"""If the lines of an element together score at least this, each line is noise as soon as it differs again."""
_TRIED: Final = 6
"""Lowest score at which a position is noise if it differed again between two visits a few seconds apart."""
_UNTRIED: Final = 10
"""Lowest score at which a position is noise even if no two visits were a few seconds apart."""


class Evidence(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Statistics that decide whether one part of a site's pages is noise.

    - `element`: the element of a line; 0 for other parts
    - `is_noise`: True if differences do not count as changes
    - `score`: sum of the judged differences; the larger it is, the more they look like noise
    - `acts`: number of times that the part differed again; equal differences of several pages count once
    - `close_again`, `close_rested`: numbers of differences that were judged by a visit seconds later
    - `latest`: what the newest act brought; -1 if the site had another difference since
    """

    element: int = 0
    is_noise: bool = False
    score: int = 0
    acts: int = 0
    close_again: int = 0
    close_rested: int = 0
    latest: int = -1

    @property
    def is_rejected(self) -> bool:
        """Return whether visits a few seconds apart have shown that a position is not noise. At least two visits
        without a difference are needed, because one may be chance.
        """
        return self.close_rested >= 2 + self.close_again

    @property
    def is_undecided(self) -> bool:
        """Return whether one more visit within seconds would help to decide whether a position is noise."""
        is_open = self.is_rejected or not self.close_again
        return not self.element and self.score > 0 and is_open and self.close_rested < TRIES * (1 + self.close_again)

    def after(self, now: int) -> Evidence:
        """Return the evidence, updated for a new difference; the next comparison decides whether the
        difference counts.
        """
        return self if now == self.latest else msgspec.structs.replace(self, latest=-1)

    def judged(self, now: int | None, *, is_close: bool, is_drawn: bool) -> Evidence:
        """Return the evidence, updated with the verdict on one difference.

        Parameters
        ----------
        now : what the part shows if it differed again; None if it rested
        is_close : True if the two visits were seconds apart
        is_drawn : True if the lines of the element are noise as a whole
        """
        is_again = now is not None
        again, rested, most = _OF_LINES if self.element else _OF_POSITIONS
        after = Evidence(
            self.element,
            False,
            min(max(self.score + (again if is_again else rested), _LEAST), most),
            self.acts + (is_again and now != self.latest),
            self.close_again + (is_close and is_again),
            self.close_rested + (is_close and not is_again),
            self.latest if now is None else now,
        )
        if self.element:
            is_noise = (after.acts >= 2 and after.score >= _DRAWN_LINE) or (after.acts >= 1 and is_drawn)
        else:
            # Each act adds two to the score.
            least = _TRIED if after.close_again else _UNTRIED * (1 + after.close_rested)
            is_noise = 2 * after.acts >= min(least, _UNTRIED) and after.score >= least
        is_noise = is_noise or (self.is_noise and after.score >= 0)
        return msgspec.structs.replace(after, is_noise=is_noise and (bool(self.element) or not after.is_rejected))


class PagePart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a page that differed in a recent comparison.

    - `now`: what the page shows there
    - `is_open`: True if the last comparison found a difference, which the next one judges
    - `quiet`: number of comparisons since the last difference
    - `sample`: the beginning of the line, if the part is shown as noise
    - `evidence`: that of the site after this visit; a new process begins with it
    """

    part: int
    now: int
    is_open: bool
    quiet: int
    sample: str
    evidence: Evidence

    @property
    def is_noise(self) -> bool:
        """Return whether differences of the part do not count as changes."""
        return self.evidence.is_noise


def decode(data: bytes) -> list[PagePart]:
    """Return the parts that are stored in a page's record; none if the data cannot be read."""
    try:
        return msgspec.msgpack.decode(data, type=list[PagePart]) if data else []
    except msgspec.DecodeError:
        return []


def encode(parts: Sequence[PagePart]) -> bytes:
    """Serialise the parts for a page's record."""
    return msgspec.msgpack.encode(parts) if parts else b""


class SiteNoise:
    """Which parts of a site's pages are noise, learned from comparisons of the pages. Only the `MAX_PARTS_OF_SITE` most
    recently judged parts are kept.
    """

    def __init__(self) -> None:
        self._parts: dict[int, Evidence] = {}
        self._noise: set[int] = set()
        self._lines_of: dict[int, int] = {}  # the score of all lines of an element

    @property
    def noise(self) -> frozenset[int]:
        return frozenset(self._noise)

    def learn(self, page: Sequence[PagePart], differences: Differences | None, *, is_close: bool) -> list[PagePart]:
        """Check whether the differences that a page's previous comparison found recur in the new one; return the
        updated parts.

        Parameters
        ----------
        differences : None if the new copy was not read, because it is the same
        is_close : True if the two visits were seconds apart
        """
        self._recall(page)
        known = {each.part: each for each in page}
        differing = {} if differences is None else differences.parts
        found = [self._differed(part, each, known.get(part), is_close=is_close) for part, each in differing.items()]
        for each in page:
            if each.part not in differing:
                # If a position is absent, or its line was moved by others, nothing is proved.
                is_same = each.now != ABSENT if differences is None else each.part in differences.resting
                rested = self._rested(each, bool(each.evidence.element) or is_same, is_close=is_close)
                found += [rested] if rested.is_noise and rested.quiet <= REST else []
        return sorted(found, key=_worth)[:MAX_PARTS]

    def _recall(self, page: Iterable[PagePart]) -> None:
        """Add what an earlier process learned about noise and stored with a page."""
        for each in page:
            if each.part not in self._parts and each.evidence.score:
                self._set(each.part, each.evidence)

    def _differed(self, part: int, found: Difference, before: PagePart | None, *, is_close: bool) -> PagePart:
        evidence = self._parts.get(part, Evidence(found.element))
        if before is not None and before.is_open:
            evidence = self._judge(part, evidence, found.now, is_close=is_close)
        elif part in self._parts:
            evidence = self._set(part, evidence.after(found.now))
        is_shown = evidence.is_noise and found.position not in self._noise
        return PagePart(part, found.now, True, 0, found.text[:_SAMPLE] if is_shown else "", evidence)

    def _rested(self, before: PagePart, is_same: bool, *, is_close: bool) -> PagePart:
        evidence = self._parts.get(before.part, before.evidence)
        # A position that is noise is judged by each comparison. A line may be away for long.
        if is_same and (before.is_open or (evidence.is_noise and not evidence.element)):
            evidence = self._judge(before.part, evidence, None, is_close=is_close)
        return msgspec.structs.replace(before, is_open=False, quiet=before.quiet + 1, evidence=evidence)

    def _judge(self, part: int, before: Evidence, now: int | None, *, is_close: bool) -> Evidence:
        score = self._lines_of.get(before.element, 0)
        after = before.judged(now, is_close=is_close, is_drawn=score >= _DRAWN_LINES)
        if before.element:
            again, rested, most = _OF_LINES
            step = rested if now is None else again * (after.acts - before.acts)
            self._lines_of[before.element] = min(max(score + step, _LEAST), most)
            if len(self._lines_of) > MAX_PARTS_OF_SITE:
                del self._lines_of[next(iter(self._lines_of))]
        return self._set(part, after)

    def _set(self, part: int, evidence: Evidence) -> Evidence:
        self._parts.pop(part, None)
        self._parts[part] = evidence
        if evidence.is_noise:
            self._noise.add(part)
        else:
            self._noise.discard(part)
        if len(self._parts) > MAX_PARTS_OF_SITE:
            oldest = next(iter(self._parts))
            del self._parts[oldest]
            self._noise.discard(oldest)
        return evidence


def _worth(part: PagePart) -> tuple[bool, bool, int]:
    """Return a sort key by which the parts most worth keeping come first."""
    return not part.is_noise, bool(part.evidence.element), part.quiet
