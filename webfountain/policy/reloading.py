"""An edited policy file takes effect on a running crawl, or is refused in one line while the old one stays.

Place in the walk: beside it. The crawl polls now and then; a poll is a `stat` of the policy file and its seeds file,
and only an edit is read. What can change while a crawl runs is what the judge holds (scope, seeds, depth, discovery,
policies, switches, conflict): tables that objects were built from (politeness, network, change, repository, cycle,
signals) take effect at the next start, and an edit of them is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import PolicyError
from webfountain.policy.files import read_collection

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.policy.files import Collection

__all__ = ["AT_NEXT_START", "Edit", "PolicyPoll"]

AT_NEXT_START: Final = ("politeness", "network", "change", "repository", "changes", "cycle", "signals")
"""Tables that a running crawl was built from."""

_Stamp = tuple[int, int, int] | None


class Edit(msgspec.Struct, frozen=True):
    """What came of an edit: the collection to adopt, or why it is refused; the changed tables that must wait."""

    collection: Collection | None
    error: str | None = None
    waits: tuple[str, ...] = ()


class PolicyPoll:
    """Finds out when the files of a collection were edited."""

    def __init__(self, collection: Collection) -> None:
        self._built_from = collection.tables
        self._collection = collection
        self._seen = self._stamps()

    def poll(self) -> Edit | None:
        """None unless a file changed since the last call; each edit is returned once, a broken one too."""
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
                None, f"{edited.path}: collection.name: {edited.name!r} is another collection's; restart for it"
            )
        self._collection = edited
        self._seen = self._stamps()  # it may name another seeds file now
        before = self._built_from
        waits = [each for each in AT_NEXT_START if getattr(before, each, None) != getattr(edited.tables, each, None)]
        return Edit(edited, waits=tuple(waits))

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        seeds = self._collection.seeds_file
        return _stamp(self._collection.path), None if seeds is None else _stamp(seeds)


def _stamp(path: Path) -> _Stamp:
    """What changes with a file's content: an editor writes in place, or moves a new file there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
