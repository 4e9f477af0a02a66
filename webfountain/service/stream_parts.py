"""Encoded parts of a change log, read once for all streams at the same cursor.

Fifty streams therefore cost about as much as one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.errors import InputError
from webfountain.service.streams import event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webfountain.api.changes import PageChange
    from webfountain.service.answers import ChangesQuery

__all__ = ["READ", "ChangeFilter", "StreamParts"]

READ: Final = 500
"""Number of entries in one read."""
_PARTS: Final = 64
"""Maximum number of encoded parts kept for other streams at the same cursor."""


class ChangeFilter(NamedTuple):
    """Filter of entries by site and verdicts. An empty field accepts all."""

    site: str
    verdicts: frozenset[str]

    @classmethod
    def of(cls, query: ChangesQuery) -> ChangeFilter:
        """Return the filter of a query. Raise InputError for an invalid verdict."""
        words = [word.strip() for word in query.verdict.split(",") if word.strip()]
        for word in words:
            if not word.isalpha():
                raise InputError(f"verdict {word!r}: is not a verdict (allowed: new, changed, minor, gone and others)")
        return cls(query.site, frozenset(words))

    def lets(self, change: PageChange) -> bool:
        """Return whether the filter accepts an entry."""
        is_of_site = not self.site or change.site == self.site
        return is_of_site and (not self.verdicts or verdict_of(change) in self.verdicts)


class StreamParts:
    """Encoded parts of one store's log, shared by its streams. `read` returns the entries after a cursor."""

    def __init__(self, read: Callable[[str], Awaitable[list[PageChange]]]) -> None:
        self._read = read
        self._parts: OrderedDict[tuple[str, ChangeFilter], asyncio.Future[tuple[bytes, str]]] = OrderedDict()

    async def after(self, cursor: str, wanted: ChangeFilter) -> tuple[bytes, str]:
        """Return the entries after a cursor as encoded events, and the cursor after them."""
        place = (cursor, wanted)
        found = self._parts.get(place)
        if found is None:
            found = self._parts[place] = asyncio.ensure_future(self._encoded(cursor, wanted))
            while len(self._parts) > _PARTS:
                self._parts.popitem(last=False)
        try:
            data, end = await asyncio.shield(found)
        except BaseException:
            self._parts.pop(place, None)
            raise
        if end == cursor:
            self._parts.pop(place, None)  # this cursor will have more entries later
        return data, end

    async def _encoded(self, cursor: str, wanted: ChangeFilter) -> tuple[bytes, str]:
        found = await self._read(cursor)
        events = [
            event(str(each.__struct_config__.tag), each, cursor=each.cursor) for each in found if wanted.lets(each)
        ]
        return b"".join(events), found[-1].cursor if found else cursor


def verdict_of(change: PageChange) -> str:
    """Return the verdict of an entry as in its JSON."""
    return str(change.__struct_config__.tag)
