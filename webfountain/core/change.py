"""The verdict on a fetched copy: did the page change, and does the change count.

It stands between the text of a 200 answer (`repository.text`) and the page's history (`change_rate`): ``new`` (no
copy before), 304, gone and failed are known from the answer alone and are not decided here.
"""

from __future__ import annotations

__all__ = ["Verdict", "verdict"]

from typing import TYPE_CHECKING, Literal

from webfountain.core.shingles import resemblance_near

if TYPE_CHECKING:
    from collections.abc import Callable

Verdict = Literal["same", "minor", "changed"]


def verdict(
    old_digest: str,
    digest: str,
    *,
    min_change: float,
    text: str,
    old_text: Callable[[], str | None],
) -> Verdict:
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
        return "same"
    if min_change <= 0:
        return "changed"
    before = old_text()
    if before is None:
        return "changed"
    if before == text:
        return "minor"
    return "changed" if resemblance_near(before, text, 1 - min_change) < 1 - min_change else "minor"
