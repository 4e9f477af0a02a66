"""Edits of a policy file while the crawl runs: a valid one takes effect, an invalid one is refused and the old file
stays.

Place in the walk: beside the crawl, which polls the file periodically. A poll is a `stat` of the policy file and its
seeds file; only an edited file is read. A running crawl adopts what the judge uses: scope, seeds, depth, discovery,
policies, switches, conflict. Other tables and keys were used to build its objects (`AT_NEXT_START`). Edits of those
take effect at the next start; the result of the poll lists them.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import PolicyError
from webfountain.policy.collection_file import parse_collection, read_collection

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection

__all__ = ["AT_NEXT_START", "CollectionInForce", "Edit", "PolicyPoll"]

AT_NEXT_START: Final = (
    "collection.limits.pages",
    "collection.limits.domain_share",
    "politeness",
    "network",
    "repository",
    "changes",
    "cycle",
    "signals",
    "ranking",
    "discovery.nofollow",
    "discovery.sitemaps",
    "duplicates",
)
"""Tables and keys from which a running crawl was built."""
_WEIGHING: Final = "policies (score, topic)"
"""Name for edits that must wait because the crawl was built without scores and topics."""

_Stamp = tuple[int, int, int] | None


class CollectionInForce(msgspec.Struct, frozen=True, array_like=True):
    """The policy file that a crawl uses, as the store keeps it: its path, and its text when it was read."""

    path: str
    text: str

    @classmethod
    def encode(cls, collection: Collection) -> bytes:
        """Serialise the file for the store's published values."""
        return msgspec.msgpack.encode(cls(str(collection.path.absolute()), collection.text))

    @classmethod
    def decode(cls, data: bytes) -> CollectionInForce:
        """Restore the result of `encode`."""
        return msgspec.msgpack.decode(data, type=cls)

    def read(self) -> Collection:
        """Return the collection. Raises PolicyError if a seeds file that it names no longer exists."""
        return parse_collection(self.text, Path(self.path))


class Edit(msgspec.Struct, frozen=True):
    """Result of an edit: the collection to adopt, or the reason why it is refused, and the changed tables and keys
    that wait for the next start.
    """

    collection: Collection | None
    error: str | None = None
    waits: tuple[str, ...] = ()


class PolicyPoll:
    """Detects edits of the files of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._built_from = collection
        self._collection = collection
        self._seen = self._stamps()

    def poll(self) -> Edit | None:
        """Return an edit if a file changed since the last call, else None. Each edit is returned once, even an invalid
        one.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return None
        self._seen = stamps
        try:
            edited = read_collection(self._collection.path)
        except PolicyError as error:
            return Edit(None, str(error))
        if edited.name != self._collection.name:
            return Edit(
                None,
                f"{edited.path}: collection.name: {edited.name!r} is another collection; restart to use it",
            )
        self._collection = edited
        self._seen = self._stamps()  # the edited file may name another seeds file
        before = self._built_from
        waits = [each for each in AT_NEXT_START if _at(before, each) != _at(edited, each)]
        if edited.is_ranking and not before.is_ranking and "ranking" not in waits:
            waits.append(_WEIGHING)
        return Edit(edited, waits=tuple(waits))

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        seeds = self._collection.seeds_file
        return _stamp(self._collection.path), None if seeds is None else _stamp(seeds)


def _at(collection: Collection, key: str) -> object:
    """Return the value at a key path."""
    return operator.attrgetter(key)(collection.tables)


def _stamp(path: Path) -> _Stamp:
    """Return a value that changes whenever a file's content changes. Editors write in place, or replace the file by a
    new one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
