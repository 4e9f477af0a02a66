"""Handle copies that are missing on the disk: their pages are fetched again in full.

Place in the walk: a stage of the store worker, where leases are passed to their site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from webfountain.records import Lease
    from webfountain.repository.repository import Repository
    from webfountain.store.answers import LeaseBatch

__all__ = ["LostCopies"]


class LostCopies(Stage):
    """Removes the location of a lost copy from a leased record, and the validators that would make the fetch
    conditional.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def hurried(self, leases: list[Lease]) -> list[Lease]:
        return [lease if self._is_whole(lease) else _without_copy(lease) for lease in leases]

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        del at
        if all(map(self._is_whole, dealt.recrawl)):
            return dealt
        return msgspec.structs.replace(dealt, recrawl=self.hurried(dealt.recrawl))

    def _is_whole(self, lease: Lease) -> bool:
        record = lease.record
        return record.digest is None or (record.copy is not None and self._repository.holds(record.copy))


def _without_copy(lease: Lease) -> Lease:
    record = msgspec.structs.replace(lease.record, copy=None, etag=None, last_modified=None)
    return msgspec.structs.replace(lease, record=record)
