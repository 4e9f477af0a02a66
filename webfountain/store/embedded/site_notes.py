"""The data of a site outside its row: its state, what was learned about it, the progress of a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.store.codec import encode_state
from webfountain.store.embedded.keys import LEARNED, PART, REGRADE, STATE, after, number, place_of, site_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import SiteState
    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = ["SiteNotes"]

_ENTRY_PREFIX: Final = 9
"""Length of a queue entry's key before its suffix: family and site."""


class SiteNotes:
    """Reads these data from the disk, and adds writes of them to a batch. Nothing is cached."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def put_state(self, batch: WriteBatch, site: str, state: SiteState) -> None:
        """Store the state of a site that its next ant needs."""
        batch.put(STATE + site_id(site), encode_state(state))

    def put_learned(self, batch: WriteBatch, site: str, learned: bytes) -> None:
        """Store what was learned about a site."""
        batch.put(LEARNED + site_id(site), learned)

    def put_part(self, batch: WriteBatch, site: str, of: int, part: bytes) -> None:
        """Store a part of what was learned about a site, or delete it if it is empty."""
        key = PART + site_id(site) + number(of)
        if part:
            batch.put(key, part)
        else:
            batch.delete(key)

    def part(self, site: str, of: int) -> bytes | None:
        """Return the part that `put_part` stored under a number, or None."""
        return self._disk.get(PART + site_id(site) + number(of))

    def parts(self, site: str) -> Iterator[tuple[int, bytes]]:
        """Yield all parts that `put_part` stored, in order of number."""
        prefix = PART + site_id(site)
        return ((place_of(key), part) for key, part in self._disk.scan(prefix, after(prefix)))

    def regraded(self, site: str, epoch: int) -> bytes:
        """Return the suffix of the last queue entry that a ranking was applied to, or b"" for none."""
        kept = self._disk.get(REGRADE + site_id(site))
        return kept[8:] if kept is not None and place_of(kept[:8]) == epoch else b""

    def put_regraded(self, batch: WriteBatch, site: str, epoch: int, entry: bytes) -> None:
        """Store the progress of a ranking: the last queue entry that was processed."""
        batch.put(REGRADE + site_id(site), number(epoch) + entry[_ENTRY_PREFIX:])

    def drop_regraded(self, batch: WriteBatch, site: str) -> None:
        """Delete the progress of a ranking."""
        batch.delete(REGRADE + site_id(site))

    def drop(self, batch: WriteBatch, site: str) -> None:
        """Delete all these data of a site."""
        sid = site_id(site)
        for family in (STATE, LEARNED, REGRADE):
            batch.delete(family + sid)
        batch.delete_range(PART + sid, after(PART + sid))
