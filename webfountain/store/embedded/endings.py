"""How fetches end in the embedded store: what an outcome changes in one step, and how copies move after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.store.counting import Counted, count_outcome, period_of
from webfountain.store.embedded.keys import IMMEDIATE, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Move, Outcome, PageRecord
    from webfountain.store.embedded.disk import WriteBatch
    from webfountain.store.embedded.leases import Held, Leases
    from webfountain.store.embedded.ledger import Ledger
    from webfountain.store.embedded.pages import Pages, Place
    from webfountain.store.embedded.sites import Sites

__all__ = ["Endings"]


class Endings:
    """Stages outcomes and moves of copies; the leases that end are the caller's to drop once it is written."""

    def __init__(self, pages: Pages, sites: Sites, ledger: Ledger, leases: Leases, period_s: float) -> None:
        self._pages = pages
        self._sites = sites
        self._ledger = ledger
        self._leases = leases
        self._period_s = period_s

    def stage(self, batch: WriteBatch, outcomes: Sequence[Outcome], at: float) -> dict[int, tuple[str, bytes]]:
        """Stage the first outcome of every lease that is out: token -> site, the page's new queue entry."""
        ended: dict[int, tuple[str, bytes]] = {}
        counted: Counted = {}
        for outcome in outcomes:
            held = None if outcome.token in ended else self._leases.get(outcome.token)
            if held is not None:
                count_outcome(counted, period_of(at, self._period_s), held.place.record, outcome)
                ended[outcome.token] = held.place.site, self._settle_one(batch, held, outcome.record)
        self._ledger.count(counted)
        return ended

    def stage_moves(self, batch: WriteBatch, moves: Sequence[Move]) -> tuple[int, list[Place]]:
        """Stage the moves of copies that are still where they were: how many, the pages as they are now."""
        followed: dict[tuple[str, bytes], Place] = {}
        count = 0
        for move in moves:
            place = followed.get((move.site, move.key)) or self._pages.place(move.site, move.key)
            if place is not None and place.record.copy == move.old:
                place.record = msgspec.structs.replace(place.record, copy=move.new)
                self._pages.replace(batch, place, place.record)
                self._ledger.move_copy(move.old.file, move.new.file)
                followed[move.site, move.key] = place
                count += 1
        return count, list(followed.values())

    def _settle_one(self, batch: WriteBatch, held: Held, record: PageRecord) -> bytes:
        """Stage one outcome; the page's new queue entry."""
        place, row = held.place, self._sites.row(held.place.site)
        assert row, f"{place.site} has a lease out and no row"
        if record.copy == held.handed.copy != place.record.copy:
            # The fetch left the copy alone, so a move of it meanwhile stands.
            record = msgspec.structs.replace(record, copy=place.record.copy)
        if held.immediate is not None:
            batch.delete(IMMEDIATE + number(held.immediate))
        self._ledger.remove(row, place.record)
        self._ledger.add(row, record)
        self._sites.touch(place.site, row)
        return self._pages.replace(batch, place, record)
