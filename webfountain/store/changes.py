"""The change log's rules, for all stores: which settled fetches are entries, and how a cursor is spelled.

A page is *held* while it is crawled: then its consumers have its copy. An entry says that a page came to be held, that
what is held changed, or that it is no longer to be held. It is made where a step is committed, from the record
before and the record after; nothing is kept here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webfountain.errors import CursorLost, InputError
from webfountain.records import Change

if TYPE_CHECKING:
    from webfountain.records import ChangeVerdict, Outcome, PageRecord

__all__ = [
    "BEGIN_ANEW",
    "KEPT",
    "cursor_at",
    "entry_of",
    "is_cursor",
    "no_cursor",
    "parting",
    "sequence_of",
    "too_old",
    "without_text",
]

KEPT: Final[frozenset[ChangeVerdict]] = frozenset({"new", "changed", "minor", "returned"})
"""Verdicts after which the page is held; after every other it is not."""

BEGIN_ANEW: Final = "take the whole list first: each line of `webfountain texts --jsonl` has the cursor to go on with"
_ONE: Final = re.compile(r"[0-9a-f]{8}-[0-9]{1,18}")
_MANY: Final = re.compile(r"[0-9a-f]{8}\.[A-Za-z0-9_-]{2,}")
"""Of a log that is written in several places (`store/shared/change_log.py`)."""


def entry_of(before: PageRecord, outcome: Outcome, *, site: str, key: bytes, at: float, sequence: int) -> Change | None:
    """The entry of a settled fetch of a page whose record was `before`; None when its consumers miss nothing."""
    record = outcome.record
    verdict = _verdict(before, record, outcome)
    if verdict is None:
        return None
    return Change(
        sequence=sequence,
        at=at,
        site=site,
        key=key,
        url=record.url,
        verdict=verdict,
        digest=record.digest if verdict in KEPT else None,
        before=before.digest,
        resemblance=outcome.resemblance,
        title=outcome.title if verdict in KEPT else None,
        target=outcome.target,
        diff=outcome.diff,
    )


def parting(record: PageRecord, verdict: ChangeVerdict, *, site: str, key: bytes, at: float, sequence: int) -> Change:
    """The entry of a held page that was forgotten or evicted."""
    return Change(sequence, at, site, key, record.url, verdict, before=record.digest)


def without_text(entry: Change) -> Change:
    """An entry of a page that was forgotten since: that it changed stays told, what it said does not."""
    return Change(entry.sequence, entry.at, entry.site, entry.key, entry.url, entry.verdict)


def cursor_at(log: str, sequence: int) -> str:
    """The cursor behind an entry; `log` names the log, so that another's cursor is not taken for one of this."""
    return f"{log}-{sequence}"


def is_cursor(text: str) -> bool:
    """Whether a text looks like a cursor of some change log."""
    return _ONE.fullmatch(text) is not None or _MANY.fullmatch(text) is not None


def sequence_of(cursor: str, log: str, *, first: int, last: int) -> int:
    """The number of the entry that a cursor is behind.

    Parameters
    ----------
    first, last : the oldest entry that is kept, and the newest; first = last + 1 when there is none

    Raises
    ------
    InputError
        when the text is no cursor of this log.
    CursorLost
        when entries behind it are no longer kept.
    """
    name, _, number = cursor.rpartition("-")
    if _ONE.fullmatch(cursor) is None or name != log or int(number) > last:
        raise no_cursor(cursor)
    if int(number) < first - 1:
        raise too_old(cursor)
    return int(number)


def no_cursor(cursor: str) -> InputError:
    """The error of a text that is no cursor of the log."""
    return InputError(f"{cursor!r} is no cursor of this store's change log; {BEGIN_ANEW}")


def too_old(cursor: str) -> CursorLost:
    """The error of a cursor that has entries behind it that went."""
    return CursorLost(f"the change log no longer reaches back to cursor {cursor!r}; {BEGIN_ANEW}")


def _verdict(before: PageRecord, record: PageRecord, outcome: Outcome) -> ChangeVerdict | None:
    held = before.state == "crawled"
    if record.state == "crawled":
        if not held:
            return "new" if before.copied is None else "returned"
        if outcome.kind == "minor":
            return "minor"
        return "changed" if outcome.kind == "changed" or record.digest != before.digest else None
    if not held:
        return None
    return "gone" if record.state == "gone" else "redirected" if record.state == "redirected" else "refused"
