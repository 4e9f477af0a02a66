"""Take over what scrapy-redis left on a server, before the first crawl with the add-on.

Each request in scrapy-redis's queue is added to the store and removed from the queue. A request with a fingerprint from
scrapy-redis's duplicate filter counts as known. The entries of the queue are pickles, and a pickle is a program that
may call any named function. So the reader accepts only a few containers and time classes of the standard library, and
refuses all other names. The number of values in a pickle is limited, because a few bytes may expand to many values. An
entry that is not plain data stays in the queue, and is counted by reason in `TakeoverResult.left`.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import hashlib
import io
import json
import pickle
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from scrapy import Request
from scrapy.utils.request import fingerprint
from w3lib.url import canonicalize_url

from webfountain.crawl.requests import crawlable, fields_of, link_of
from webfountain.crawl.values import UnstorableValue, Values
from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore

__all__ = [
    "EARLIER_SEEN",
    "PickleRefused",
    "SeenFingerprints",
    "TakeoverResult",
    "link_of_entry",
    "read_pickle",
    "take_over",
]

EARLIER_SEEN: Final = "scrapy-redis/seen"
_BYTES: Final = 20
MAX_BYTES: Final = 10_000_000
MAX_VALUES: Final = 1_000_000
_ALLOWED: Final[dict[tuple[str, str], Any]] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("datetime", "datetime"): datetime.datetime,
    ("datetime", "date"): datetime.date,
    ("datetime", "time"): datetime.time,
    ("datetime", "timedelta"): datetime.timedelta,
    ("datetime", "timezone"): datetime.timezone,
    ("decimal", "Decimal"): decimal.Decimal,
}


class LeftoverKeys(Protocol):
    """The Redis keys in which scrapy-redis keeps a spider's queue and duplicate filter."""

    def requests(self) -> Iterator[list[bytes]]:
        """Yield the entries of the queue, some hundreds at a time."""
        ...

    def remove(self, entries: Sequence[bytes]) -> None:
        """Remove entries from the queue."""
        ...

    def fingerprints(self) -> Iterator[bytes]:
        """Yield the fingerprints in the duplicate filter, as hex digits."""
        ...


class TakeoverResult(NamedTuple):
    """Numbers of new requests, known requests and fingerprints; `left` counts, by reason, the entries that stay in the
    queue.
    """

    requests: int
    known: int
    fingerprints: int
    left: dict[str, int]


class SeenFingerprints:
    """The fingerprints of scrapy-redis's duplicate filter: SHA-1 digests, sorted and concatenated."""

    def __init__(self, digests: bytes) -> None:
        self._digests = digests

    @classmethod
    def merged(cls, before: bytes | None, more: Iterable[bytes]) -> bytes:
        """Return the stored digests `before` together with new digests, sorted and without invalid digests."""
        held = before or b""
        found = {held[at : at + _BYTES] for at in range(0, len(held), _BYTES)}
        for text in more:
            try:
                digest = bytes.fromhex(text.decode("ascii"))
            except ValueError:
                continue
            if len(digest) == _BYTES:
                found.add(digest)
        return b"".join(sorted(found))

    def __len__(self) -> int:
        return len(self._digests) // _BYTES

    def holds(self, request: Request) -> bool:
        """Return whether scrapy-redis had seen a request. Old and new releases of scrapy-redis compute different
        fingerprints, so both are looked up.
        """
        return bool(self._digests) and any(self._has(digest) for digest in _digests_of(request))

    def _has(self, digest: bytes) -> bool:
        place = bisect_left(range(len(self)), digest, key=self._at)
        return self._at(place) == digest

    def _at(self, place: int) -> bytes:
        return self._digests[place * _BYTES : (place + 1) * _BYTES]


def _digests_of(request: Request) -> Sequence[bytes]:
    url = canonicalize_url(request.url)
    now = {"method": request.method, "url": url, "body": (request.body or b"").hex()}
    before = request.method.encode() + url.encode() + (request.body or b"")
    return [
        hashlib.sha1(json.dumps(now, sort_keys=True).encode(), usedforsecurity=False).digest(),
        hashlib.sha1(before, usedforsecurity=False).digest(),
    ]


class PickleRefused(InputError):
    """Error for a pickle that uses a class or function other than the allowed ones."""


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return the class of an allowed name; raise PickleRefused for any other name."""
        found = _ALLOWED.get((module_name, global_name))
        if found is None:
            raise PickleRefused(f"it names {module_name}.{global_name}")
        return found

    def persistent_load(self, pid: Any) -> Any:
        """Raise PickleRefused for a reference to an object outside the pickle."""
        raise PickleRefused("it refers to data outside itself")


def read_pickle(data: bytes) -> Any:
    """Return the value of a pickle that contains only plain data.

    Raises
    ------
    PickleRefused
        if the pickle contains another name or is too large, or if the data is not a pickle.
    """
    if len(data) > MAX_BYTES:
        raise PickleRefused(f"it is {len(data):,} bytes long (at most {MAX_BYTES:,})")
    try:
        value = _DataUnpickler(io.BytesIO(data)).load()
    except PickleRefused:
        raise
    except Exception as error:
        # The data may come from a stranger, and the unpickler has as many kinds of errors as opcodes.
        raise PickleRefused(f"it is not a pickle ({type(error).__name__})") from None
    _count(value)
    return value


def _count(value: Any) -> None:
    """Raise PickleRefused for a value with too many parts, such as a value that contains itself."""
    left, waiting = MAX_VALUES, [value]
    while waiting:
        found = waiting.pop()
        left -= 1
        if left < 0:
            raise PickleRefused(f"it contains more than {MAX_VALUES:,} values")
        if isinstance(found, dict):
            waiting += found.keys()
            waiting += found.values()
        elif isinstance(found, list | tuple | set | frozenset):
            waiting += found


def link_of_entry(data: bytes) -> Link:
    """Convert a queue entry to the `Link` that the store keeps.

    Raises
    ------
    PickleRefused
        if the entry is more than data, or not a request.
    """
    given = _read(data)
    if not isinstance(given, dict) or not isinstance(given.get("url"), str):
        raise PickleRefused("it is not a request")
    held = {str(name): value for name, value in given.items()}
    attributes = {name: value for name, value in held.items() if name in Request.attributes}
    callback, errback = (_method(attributes.pop(name, None)) for name in ("callback", "errback"))
    try:
        request = Request(**attributes)
        url = crawlable(request)
        fields = fields_of(request, callback, errback)
        if isinstance(held.get("_class"), str):
            fields["_class"] = held["_class"]
        body = Values.pack(fields)
    except (TypeError, ValueError, AttributeError, UnstorableValue) as error:
        raise PickleRefused(f"it is not a request ({error})") from None
    if url is None:
        raise PickleRefused("its URL is not http or https")
    key = fingerprint(request)
    if request.dont_filter:  # it differs from all other requests
        key = hashlib.sha1(key + data, usedforsecurity=False).digest()
    return link_of(request, url, body, key)


def _read(data: bytes) -> Any:
    if data.lstrip()[:1] == b"{":
        try:
            return json.loads(data)
        except ValueError:
            raise PickleRefused("it is neither a pickle nor JSON") from None
    return read_pickle(data)


def _method(name: Any) -> str | None:
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise PickleRefused("its callback is not a name")
    return name


def take_over(keys: LeftoverKeys, store: FrontierStore, *, at: float) -> TakeoverResult:
    """Take over the queue and the duplicate filter. If `take_over` is interrupted, the call can be repeated."""
    taken = known = 0
    left: collections.Counter[str] = collections.Counter()
    for entries in keys.requests():
        links, done = [], []
        for entry in entries:
            try:
                links.append(link_of_entry(entry))
                done.append(entry)
            except PickleRefused as why:
                left[str(why)] += 1
        repeated = store.queues.discover(links, at=at).known if links else 0
        known += repeated
        taken += len(links) - repeated
        keys.remove(done)
    seen = SeenFingerprints.merged(store.board.value(EARLIER_SEEN), keys.fingerprints())
    if seen:
        store.board.put_value(EARLIER_SEEN, seen)
    return TakeoverResult(taken, known, len(seen) // _BYTES, dict(left))
