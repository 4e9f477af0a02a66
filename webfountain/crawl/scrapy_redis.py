"""Take over the queue and the duplicate filter of scrapy-redis, before the first crawl with the add-on.

Each pickled request in the queue is read as plain data (`plain_pickle`), added to the store and removed from the queue.
A request with a fingerprint from scrapy-redis's duplicate filter counts as known. An entry that is not plain data stays
in the queue, and is counted by reason in `TakeoverResult.left`.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from scrapy import Request
from scrapy.utils.request import fingerprint
from w3lib.url import canonicalize_url

from webfountain.crawl.plain_pickle import PickleRefused, read_pickle
from webfountain.crawl.requests import crawlable, link_of
from webfountain.crawl.values import UnstorableValue, Values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore

__all__ = ["EARLIER_SEEN", "SeenFingerprints", "TakeoverResult", "link_of_entry", "take_over"]

EARLIER_SEEN: Final = "scrapy-redis/seen"
_BYTES: Final = 20


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
    data_of = {str(name): value for name, value in given.items()}
    kinds = {name: value for name, value in data_of.items() if name in Request.attributes}
    kinds["callback"], kinds["errback"] = (_method(data_of.get(name)) for name in ("callback", "errback"))
    try:
        request = Request(**{**kinds, "callback": None, "errback": None})
        url = crawlable(request)
        packed = {**{name: getattr(request, name) for name in request.attributes}, **_named(kinds), **_class(data_of)}
        packed["headers"] = dict(request.headers)
        body = Values.pack(packed)
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


def _named(kinds: dict[str, Any]) -> dict[str, Any]:
    return {name: kinds[name] for name in ("callback", "errback")}


def _class(given: dict[str, Any]) -> dict[str, str]:
    path = given.get("_class")
    return {"_class": path} if isinstance(path, str) else {}


def take_over(keys: LeftoverKeys, store: FrontierStore, *, at: float) -> TakeoverResult:
    """Take over the queue and the duplicate filter. If `take_over` is interrupted, the call can be repeated."""
    taken = known = 0
    left: Counter[str] = Counter()
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
