"""The default store: RocksDB in one folder, one writer, no server.

Only one thread may change the store. Other threads may read statistics, sites, pages and the census at the same time. A
store opened for reading answers every query from an up-to-date view, and refuses every write. Leases exist only in the
memory of the writing process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store.embedded.census import EmbeddedCensus
from webfountain.store.embedded.change_log import LocalChangeLog
from webfountain.store.embedded.keys import VALUE
from webfountain.store.embedded.maintenance import recount
from webfountain.store.embedded.pages import EmbeddedPages
from webfountain.store.embedded.queues import EmbeddedQueues
from webfountain.store.embedded.sites import EmbeddedSites
from webfountain.store.embedded.steps import Steps
from webfountain.store.embedded.transfer import disk_rows
from webfountain.store.shared_contract import NoLives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.keys import Meta
    from webfountain.store.embedded.side_files import NoLogEnd
    from webfountain.store.shared_contract import FeedForm
    from webfountain.store.transfer_rows import Row

__all__ = ["EmbeddedBoard", "EmbeddedStore"]


class EmbeddedBoard:
    """Implementation of `Board` in the embedded store."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def value(self, name: str) -> bytes | None:
        """Return the current value of a name, by one get."""
        self._steps.disk.refresh()
        return self._steps.disk.get(VALUE + name.encode())

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value, by one put."""
        with self._steps.begin() as batch:
            batch.put(VALUE + name.encode(), value)

    def settle_value(self, name: str, value: bytes) -> bytes:
        before = self.value(name)
        if before is None:
            self.put_value(name, value)
        return value if before is None else before


class EmbeddedStore:
    """Implementation of `FrontierStore` on an open database. `log_end` stores the number of the change log's newest
    entry."""

    def __init__(self, disk: Disk, meta: Meta, log_end: NoLogEnd) -> None:
        self.claims = None  # for one process only
        self.lives = NoLives()  # a loss of its disk is noticed when the store is opened
        self._log_end = log_end
        self.steps = steps = Steps(disk, generation=meta.generation, log_end=log_end)
        self.census = EmbeddedCensus(steps, period_s=meta.period_s, fastest_s=meta.fastest_s)
        self.changes = LocalChangeLog(steps, meta.log)
        self.queues = EmbeddedQueues(steps, census=self.census, changes=self.changes)
        self.sites = EmbeddedSites(steps)
        self.pages = EmbeddedPages(steps, self.changes)
        self.board = EmbeddedBoard(steps)

    def feed(self, key: str | None = None, form: FeedForm = "list") -> None:
        """Return None, because there is no server."""

    def rows(self) -> Iterator[Row]:
        """Yield the content of the store, by one scan. A store opened for reading yields its content as it was at the
        beginning of the scan.
        """
        self.steps.sites.refresh()
        return disk_rows(self.steps.disk)

    def recount(self) -> None:
        """Compute the counts again from every page."""
        recount(self.steps)

    def close(self) -> None:
        self.steps.disk.close()
        self._log_end.close()
