"""The rules of the change log, which are the same in all stores: the entry that a fetch causes, and the form of a
cursor.

A page is *held* if its state is crawled and it is not a duplicate of another page. An entry reports that a page became
held, that its held copy changed, or that it is no longer held.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

import xxhash

from webfountain.errors import CursorLost, InputError
from webfountain.records import COPIED, Change, PageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.records import ChangeVerdict, Outcome

__all__ = [
    "BEGIN_ANEW",
    "KEPT",
    "check_settled",
    "cursor_at",
    "entry_of",
    "is_cursor",
    "is_held",
    "no_cursor",
    "parting",
    "sequence_of",
    "too_old",
    "without_text",
]

KEPT: Final[frozenset[ChangeVerdict]] = COPIED | {"returned"}
"""Verdicts of log entries after which a consumer of the log has a copy of the page."""

BEGIN_ANEW: Final = "read the whole list first: each line of `webfountain texts --jsonl` has a cursor to continue with"
_ONE: Final = re.compile(r"[0-9a-f]{8}-[0-9]{1,18}(?:-[0-9a-f]{8})?")
_MANY: Final = re.compile(r"[0-9a-f]{8}\.[A-Za-z0-9_-]{2,}")
"""Format of a cursor into a change log that is spread over several shards (`store/shared/change_log.py`)."""


def is_held(record: PageRecord) -> bool:
    """Return whether the consumers of the collection have a copy of the page."""
    return record.state == "crawled" and record.duplicate_of is None


def check_settled(outcomes: Iterable[Outcome]) -> None:
    """Raise ValueError if the record of an outcome is never-crawled, because the record must contain the result of the
    fetch.
    """
    for outcome in outcomes:
        if outcome.record.state == "never-crawled":
            raise ValueError(f"{outcome.record.url}: a page that was settled cannot be never-crawled")


def entry_of(before: PageRecord, outcome: Outcome, *, site: str, key: bytes, at: float, sequence: int) -> Change | None:
    """Return the entry for a settled fetch, or None if nothing changed for consumers. `before` is the page's record
    before the fetch.
    """
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
        target=record.duplicate_of if verdict == "duplicate" else outcome.target,
        diff=outcome.diff,
    )


def parting(record: PageRecord, verdict: ChangeVerdict, *, site: str, key: bytes, at: float, sequence: int) -> Change:
    """Return the log entry for a held page that was forgotten or evicted."""
    return Change(sequence, at, site, key, record.url, verdict, before=record.digest)


def without_text(entry: Change) -> Change:
    """Return a copy of a log entry without the fields that describe the page's content."""
    return Change(entry.sequence, entry.at, entry.site, entry.key, entry.url, entry.verdict)


def cursor_at(log: str, sequence: int, at: float | None) -> str:
    """Return the cursor after an entry. `log` is the name of the log; the cursor of a log with another name is refused.

    A cursor contains a hash of the entry's time `at`, because a store that lost entries may give their numbers to new
    ones. `at` is None if the log no longer keeps the entry.
    """
    name = f"{log}-{sequence}"
    return name if at is None else f"{name}-{_hash_of(at)}"


def _hash_of(at: float) -> str:
    return xxhash.xxh32_hexdigest(struct.pack(">d", at))


def is_cursor(text: str) -> bool:
    """Return whether a text has the form of a cursor."""
    return _ONE.fullmatch(text) is not None or _MANY.fullmatch(text) is not None


def sequence_of(cursor: str, log: str, *, first: int, last: int, time_of: Callable[[int], float | None]) -> int:
    """Return the number of the entry before a cursor.

    Parameters
    ----------
    first, last : numbers of the oldest kept entry and of the newest; first = last + 1 if there is none
    time_of : returns the time of an entry by its number, None if it is not kept

    Raises
    ------
    InputError
        if the text is not a cursor of this log.
    CursorLost
        if entries after it are no longer kept.
    """
    if _ONE.fullmatch(cursor) is None:
        raise no_cursor(cursor)
    name, text, *mark = cursor.split("-")
    number = int(text)
    if name != log or number > last:
        raise no_cursor(cursor)
    if number < first - 1:
        raise too_old(cursor)
    at = time_of(number) if mark else None
    if at is not None and _hash_of(at) != mark[0]:
        raise no_cursor(cursor)  # The entry that had this time was lost.
    return number


def no_cursor(cursor: str) -> InputError:
    """Return the error for a text that is not a cursor of the log."""
    return InputError(f"{cursor!r} is not a cursor of this store's change log; {BEGIN_ANEW}")


def too_old(cursor: str) -> CursorLost:
    """Return the error for a cursor that is too old, because entries after it were dropped."""
    return CursorLost(f"the change log no longer reaches back to cursor {cursor!r}; {BEGIN_ANEW}")


def _verdict(before: PageRecord, record: PageRecord, outcome: Outcome) -> ChangeVerdict | None:
    held = is_held(before)
    if record.state == "crawled":
        if record.duplicate_of is not None:
            # Even a page that was never held gets an entry, so that consumers find its copy under the other URL.
            return None if before.state == "crawled" and before.duplicate_of == record.duplicate_of else "duplicate"
        if not held:
            return "new" if before.copied is None else "returned"
        if outcome.kind == "minor":
            return "minor"
        return "changed" if outcome.kind == "changed" or record.digest != before.digest else None
    if not held:
        return None
    return "gone" if record.state == "gone" else "redirected" if record.state == "redirected" else "refused"
