"""The verdict on a fetched copy: did the page change, and does the change count.

It stands between the text of a 200 answer (`repository.text`) and the page's history (`change_rate`): ``new`` (no
copy before), 304, gone and failed are known from the answer alone and are not decided here.
"""

from __future__ import annotations

__all__ = ["DIFF_BYTES", "Judged", "Verdict", "unified", "verdict"]

import difflib
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webfountain.core.shingles import resemblance_near

if TYPE_CHECKING:
    from collections.abc import Callable

Verdict = Literal["same", "minor", "changed"]
DIFF_BYTES: Final = 20_000
"""Most bytes of a diff in UTF-8."""
_DIFF_LINES: Final = 4000
"""Lines of either text that a diff looks at: its time grows with their product at worst."""
_DIFF_LINE: Final = 2000
"""Characters of a line that a diff shows."""


class Judged(NamedTuple):
    """The verdict on a new copy, and the resemblance of its text to the old one's where that was computed."""

    verdict: Verdict
    resemblance: float | None = None


def verdict(
    old_digest: str,
    digest: str,
    *,
    min_change: float,
    text: str,
    old_text: Callable[[], str | None],
) -> Judged:
    """Judge a new copy against the old one: ``same``, ``minor`` or ``changed``.

    Equal digests are the same copy. With `min_change` 0 every other byte counts. Else the change counts when the
    resemblance of the two visible texts is below 1 - `min_change`.

    Parameters
    ----------
    old_digest, digest : digests of the two bodies after content decoding
    min_change : `change.min_change` of the collection, 0..1
    text : visible text of the new copy
    old_text : loads the old copy's text; called once, and only when the digests differ and `min_change` is above 0.
        None (the text was lost or never kept) counts as changed, so that the page is not taken for fresh

    Source: Edwards 2001, section 2 (only a non-trivial change, judged by shingles, makes a page obsolete).
    """
    if old_digest == digest:
        return Judged("same")
    if min_change <= 0:
        return Judged("changed")
    before = old_text()
    if before is None:
        return Judged("changed")
    if before == text:
        return Judged("minor", 1.0)
    resemblance = resemblance_near(before, text, 1 - min_change)
    return Judged("changed" if resemblance < 1 - min_change else "minor", resemblance)


def unified(before: str, text: str) -> str:
    """A unified diff of two visible texts, without file names, cut at a line's end to at most `DIFF_BYTES`.

    Of long texts the first lines are compared, of long lines their beginning; some 10 ms for two pages of 20 kB.
    """
    old, new = ([line[:_DIFF_LINE] for line in islice(whole.splitlines(), _DIFF_LINES)] for whole in (before, text))
    kept: list[str] = []
    room = DIFF_BYTES
    for line in islice(difflib.unified_diff(old, new, lineterm=""), 2, None):
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            break
        kept.append(line + "\n")
    return "".join(kept)
