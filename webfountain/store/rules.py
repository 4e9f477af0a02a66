"""What all stores have in common: records as bytes, which URLs a lease takes, what a census counts, what is a change.

The change log's rules, for all stores: which settled fetches are entries, and how a cursor is spelled. A page is
*held* while it is crawled and no duplicate of another: then its consumers have its copy. An entry says that a page
came to be held, that what is held changed, or that it is no longer to be held. It is made where a step is committed,
from the record before and the record after; nothing is kept here.

Records as bytes: what a store keeps of a page and a site, and numbers whose bytes sort as they do. Used by every
store that keeps bytes. Page records are msgpack arrays that grow by version: a field added at the end with a default
reads old records. It knows nothing of keys, queues or files.

Which of a site's due URLs a lease takes: one rule for all stores and both queues, over the heads of the lanes. A
store offers up to n due URLs of each lane; the choice is made here. It reads and writes nothing.

What the census counts: one rule for all stores, applied where a step is committed. The rows are the measured
constants of the model (DESIGN.md section 4). A check of a crawled page counts for the bucket it was in; every other
fetch counts for bucket None, and a first copy is a birth in its new bucket. A refusal asked nothing of the site and
counts nowhere.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.errors import CursorLost, InputError
from webfountain.records import FETCHED, CensusRow, Change, PageRecord, SiteState
from webfountain.store.contract import ADVANCED, RETRY, RETRY_SHARE
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.records import ChangeVerdict, Link, Outcome

__all__ = [
    "BEGIN_ANEW",
    "KEPT",
    "MILLISECONDS",
    "Candidate",
    "Counted",
    "check_settled",
    "choose",
    "count_arrivals",
    "count_outcome",
    "cursor_at",
    "decode_page",
    "decode_state",
    "encode_page",
    "encode_state",
    "entry_of",
    "evicted",
    "first_record",
    "from_sortable",
    "is_cursor",
    "is_held",
    "last_crawled_ms",
    "no_cursor",
    "parting",
    "period_of",
    "rows_of",
    "sequence_of",
    "source_of",
    "taken_over",
    "to_sortable",
    "too_old",
    "without_text",
]

_encoder = msgspec.msgpack.Encoder()
_page = msgspec.msgpack.Decoder(PageRecord)
_state = msgspec.msgpack.Decoder(SiteState)
_double = struct.Struct(">d")
_word = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1

encode_page = _encoder.encode
decode_page = _page.decode
encode_state = _encoder.encode
decode_state = _state.decode


def source_of(link: Link) -> bytes:
    """The page that carries a link, as its record names it (`PageRecord.source`); b"" for seeds and sitemaps."""
    if not link.source:
        return b""
    home, key = _named(link.source)
    return key if home == link.site else key + home.encode()


@functools.lru_cache(maxsize=256)
def _named(url: str) -> tuple[str, bytes]:
    """Site and key of a page; those of one page's links are asked for together."""
    return site_of(url), fingerprint(url)


def first_record(link: Link, at: float) -> PageRecord:
    """The record of a page that a link made known at the time `at`."""
    return PageRecord(
        url=link.url,
        policy=link.policy,
        importance=link.importance + 0.0,  # one zero: -0.0 stands with 0.0 in every queue
        first_seen=at,
        depth=link.depth,
        request=link.request,
        trust=link.trust,
        source=source_of(link),
        scores=link.scores,
    )


def taken_over(record: PageRecord, link: Link) -> PageRecord:
    """The record of a known page under the policy of a link; what is known of the page stays."""
    return msgspec.structs.replace(
        record,
        policy=link.policy,
        trust=link.trust,
        importance=link.importance + 0.0 if record.state == "never-crawled" else record.importance,
        source=source_of(link),
        scores=link.scores if record.state == "never-crawled" else record.scores,
    )


def evicted(record: PageRecord) -> PageRecord:
    """The record of a page that was taken out of the collection: what its link said of it, and no more."""
    return PageRecord(
        url=record.url,
        policy=record.policy,
        importance=record.importance,
        first_seen=record.first_seen,
        depth=record.depth,
        request=record.request,
        trust=record.trust,
        source=record.source,
        scores=record.scores[:1],  # what it says is known: who links it says no more
    )


def to_sortable(number: float) -> bytes:
    """Eight bytes that sort as the number does, from -inf to inf (-0.0 just before 0.0; NaN has no order).

    Big-endian IEEE 754 doubles sort as unsigned integers once the sign bit of positive ones is set and
    negative ones are inverted.
    """
    bits: int = _word.unpack(_double.pack(number))[0]
    return _word.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)


def from_sortable(text: bytes) -> float:
    """The number that `to_sortable` made into eight bytes."""
    bits: int = _word.unpack(text)[0]
    number: float = _double.unpack(_word.pack(bits ^ _SIGN if bits & _SIGN else bits ^ _ALL))[0]
    return number


class Candidate(NamedTuple):
    """A due URL: its lane, its order within the lane, its number of arrival (0 in the recrawl queue), its key."""

    lane: int
    order: float
    arrival: int
    key: bytes


def choose(due: Iterable[Candidate], n: int, horizon: Sequence[float]) -> list[Candidate]:
    """At most `n` of the due URLs: ADVANCED by order, then the other lanes by overdue time, then some of RETRY.

    While others are due RETRY gets at most max(1, n // RETRY_SHARE) places, and none of a lease of one: dead
    pages wait for live ones, never the other way round. What is overdue alike goes by lane, then by arrival: with a
    horizon of infinities the never-crawled queue gives its most important class first.
    """
    live: list[tuple[bool, float, int, int, float, bytes, Candidate]] = []
    dead: list[Candidate] = []
    for one in due:
        if one.lane == RETRY:
            dead.append(one)
        else:
            first = one.lane == ADVANCED
            overdue = one.order if first else one.order - horizon[one.lane]
            live.append((not first, overdue, one.lane, one.arrival, one.order, one.key, one))
    dead.sort(key=lambda one: (one.order, one.key))
    places = n if not live else max(1, n // RETRY_SHARE) if n > 1 else 0
    retried = dead[:places]
    live.sort()
    return [entry[-1] for entry in live[: n - len(retried)]] + retried


MILLISECONDS = 1000
"""Sums of times are kept as whole milliseconds: integers add up the same in any order and never drift."""

Counted = dict[tuple[int, int | None], list[float]]
"""(period, bucket) -> fetches, changes, seconds, links, births, milliseconds watched."""


def period_of(at: float, period_s: float) -> int:
    """The number of the time period that holds `at`."""
    return math.floor(at / period_s)


def last_crawled_ms(record: PageRecord) -> int:
    """The record's term in its bucket's sum of `last_crawled`, in whole milliseconds."""
    return round((record.last_crawled or 0.0) * MILLISECONDS)


def count_arrivals(counted: Counted, period: int, births: int) -> None:
    """Count never-seen URLs that came from outside (nconst of the model)."""
    if births:
        _row(counted, period, None)[4] += births


def count_outcome(counted: Counted, period: int, before: PageRecord, outcome: Outcome) -> None:
    """Count one settled fetch of a page whose record was `before`."""
    if outcome.kind not in FETCHED:
        return
    row = _row(counted, period, before.bucket if before.state == "crawled" else None)
    row[0] += 1
    row[1] += outcome.kind == "changed"
    row[2] += outcome.seconds
    row[3] += outcome.links_new
    if before.last_crawled is not None and outcome.record.last_crawled is not None and before.state == "crawled":
        row[5] += last_crawled_ms(outcome.record) - last_crawled_ms(before)
    if outcome.kind == "new":
        _row(counted, period, outcome.record.bucket)[4] += 1


def rows_of(counted: Iterable[tuple[tuple[int, int | None], list[float]]]) -> list[CensusRow]:
    """The rows in order of period, bucket None first."""
    ordered = sorted(counted, key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1]))
    return [
        CensusRow(period, bucket, int(fetches), int(changes), seconds, int(links), int(births), watched / MILLISECONDS)
        for (period, bucket), (fetches, changes, seconds, links, births, watched) in ordered
    ]


def _row(counted: Counted, period: int, bucket: int | None) -> list[float]:
    return counted.setdefault((period, bucket), [0, 0, 0.0, 0, 0, 0])


KEPT: Final[frozenset[ChangeVerdict]] = frozenset({"new", "changed", "minor", "returned"})
"""Verdicts after which the page is held; after every other it is not."""

BEGIN_ANEW: Final = "take the whole list first: each line of `webfountain texts --jsonl` has the cursor to go on with"
_ONE: Final = re.compile(r"[0-9a-f]{8}-[0-9]{1,18}")
_MANY: Final = re.compile(r"[0-9a-f]{8}\.[A-Za-z0-9_-]{2,}")
"""Of a log that is written in several places (`store/shared/scripts.py`)."""


def is_held(record: PageRecord) -> bool:
    """Whether the consumers of the collection have a copy of the page."""
    return record.state == "crawled" and record.duplicate_of is None


def check_settled(outcomes: Iterable[Outcome]) -> None:
    """Raise ValueError when the record of one of them is never-crawled: it must say what became of the fetch."""
    for outcome in outcomes:
        if outcome.record.state == "never-crawled":
            raise ValueError(f"{outcome.record.url}: a settled record's state must say what became of the fetch")


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
        target=record.duplicate_of if verdict == "duplicate" else outcome.target,
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
    held = is_held(before)
    if record.state == "crawled":
        if record.duplicate_of is not None:
            # Also of a page that was never held, so that who looks for its URL knows where to look.
            return None if before.state == "crawled" and before.duplicate_of == record.duplicate_of else "duplicate"
        if not held:
            return "new" if before.copied is None else "returned"
        if outcome.kind == "minor":
            return "minor"
        return "changed" if outcome.kind == "changed" or record.digest != before.digest else None
    if not held:
        return None
    return "gone" if record.state == "gone" else "redirected" if record.state == "redirected" else "refused"
