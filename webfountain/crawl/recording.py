"""Record a crawl for other processes (`webfountain.history`): its history in the store, and its live snapshots next to
the store.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from scrapy import signals

from webfountain.crawl.session import Session
from webfountain.errors import WebfountainError
from webfountain.history.record_loop import RecordLoop
from webfountain.history.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.history.live import LiveSnapshot

__all__ = ["Recording"]

MAX_FILES: Final = 100_000
"""A folder with more files than this is not measured, because sizes are measured once a minute."""


class Recording:
    """The recording of one crawl."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        recording = cls(Session.of(crawler))
        crawler.signals.connect(recording.spider_opened, signals.spider_opened)
        crawler.signals.connect(recording.spider_closed, signals.spider_closed)
        return recording

    def spider_opened(self) -> None:
        """Start recording, if the crawl has a frontier."""
        session = self._session
        if session.built is None:
            return
        folder = session.built.folder
        sizes = partial(_sizes, session, folder)
        recorder = Recorder(session.frontier, session.metrics, now=session.now, sizes=sizes)
        loop = RecordLoop(recorder, session.on_store, folder, made=self._note)
        session.before_close.append(lambda: session.frontier.worker.on_store(loop.end))
        self._task = asyncio.get_running_loop().create_task(loop.run())

    def spider_closed(self) -> None:
        """Stop recording."""
        if self._task is not None:
            self._task.cancel()

    def _note(self, snapshot: LiveSnapshot) -> None:
        self._session.snapshot = snapshot


def _sizes(session: Session, folder: Path | None) -> tuple[int | None, int | None]:
    """Return the sizes of the store and of the repository, in bytes; None means unknown."""
    repository = None
    with suppress(WebfountainError):  # the store is on a server, and no folder is set for copies
        repository = _folder_bytes(session.config.repository_folder)
    return None if folder is None else _folder_bytes(folder / "db"), repository


def _folder_bytes(folder: Path) -> int | None:
    """Return the size of all files in a folder tree, in bytes, or None if the folder is missing or too large."""
    if not folder.is_dir():
        return None
    total, left = 0, MAX_FILES
    for place, _, names in os.walk(folder):
        left -= len(names)
        if left < 0:
            return None
        for name in names:
            with suppress(OSError):  # the file was removed meanwhile
                total += os.stat(os.path.join(place, name), follow_symlinks=False).st_size
    return total
