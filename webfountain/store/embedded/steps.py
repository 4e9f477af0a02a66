"""Atomic steps on an embedded store: the writes of a step and the changed counts are on disk together, or not at
all.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from webfountain.store.embedded.disk import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.embedded.counts import Counts
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.log_end import NoLogEnd
    from webfountain.store.embedded.site_rows import SiteRows

__all__ = ["Steps"]


class Steps:
    """The write batches, one per step. After a failed write, rows and counts are read again."""

    def __init__(self, disk: Disk, *, sites: SiteRows, counts: Counts, log_end: NoLogEnd) -> None:
        self._disk = disk
        self._sites = sites
        self._counts = counts
        self._log_end = log_end

    @contextmanager
    def begin(self) -> Iterator[WriteBatch]:
        """Begin a step: the block fills a batch, which is written with the changed site rows and counts."""
        batch = WriteBatch(raw_mode=True)
        try:
            yield batch
            self._sites.stage(batch)
            self._counts.stage(batch)
            self._disk.write(batch)
        except BaseException:
            self._sites.load()
            self._counts.load()
            raise
        self._log_end.note(self._counts.changes)
