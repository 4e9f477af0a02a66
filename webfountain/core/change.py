"""Decide whether a fetched page changed, and whether the change counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from webfountain.core.shingles import exact_resemblance
from webfountain.core.sketch import most_resemblance, sketch_rows, sketches

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Comparison", "Verdict", "verdict"]

Verdict = Literal["same", "minor", "changed"]


class Comparison(NamedTuple):
    """The verdict on a new copy, with the resemblance of the old and the new text (None if not computed)."""

    verdict: Verdict
    resemblance: float | None = None


def verdict(
    old_digest: str,
    digest: str,
    *,
    min_change: float,
    text: str,
    old_text: Callable[[], str | None],
    old_sketch: bytes | None = None,
) -> Comparison:
    """Judge a new copy against the old one: ``same``, ``minor`` or ``changed``.

    With `min_change` 0 every different byte counts as a change. With a larger `min_change`, a change counts if the
    resemblance of the two visible texts is below 1 - `min_change`.

    Parameters
    ----------
    old_digest, digest : digests of the two bodies after content decoding
    min_change : `change.min_change` of the collection, 0..1
    text : visible text of the new copy
    old_text : loads the old copy's text; called at most once, and only if the digests differ and `min_change` is above
        0
    old_sketch : used if `old_text` returns None (the text was lost, or is on another machine). For 755 pairs of real
        versions, 97 % of the verdicts by sketch agreed with the verdicts by text, and all agreed if the resemblance was
        at least .05 from the threshold. Without a sketch the change counts, because a changed page must not be called
        fresh

    Source: Edwards 2001, section 2 (only a non-trivial change, judged by shingles, makes a page obsolete).
    """
    if old_digest == digest:
        return Comparison("same")
    if min_change <= 0:
        return Comparison("changed")
    before = old_text()
    if before == text:
        return Comparison("minor", 1.0)
    if before is not None:
        resemblance = exact_resemblance(before, text)
    elif old_sketch is not None and (drawn := sketches(text)):
        resemblance = float(most_resemblance(drawn, sketch_rows([old_sketch]))[0])
    else:
        return Comparison("changed")
    return Comparison("changed" if resemblance < 1 - min_change else "minor", resemblance)
