"""The record loop reports each outage of what it writes to, and ends no crawl."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from tests.frontier.drive import Drive, collection_of
from webfountain.history import record_loop
from webfountain.history.record_loop import RecordLoop
from webfountain.history.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.frontier.drive import Answer
    from webfountain.history.live import LiveSnapshot
    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore


def answer(fetch: Fetch, at: float) -> Answer:
    del fetch, at
    return 404, {}, b"", 0.1


class Failing(Recorder):
    """Stores the samples of a history as a script says: each step is the error of one sample, or None."""

    def __init__(self, drive: Drive, script: list[Exception | None]) -> None:
        super().__init__(drive.frontier, drive.metrics, now=drive.clock.now)
        self.script = script

    def record(self, store: FrontierStore) -> None:
        if not self.script:
            raise asyncio.CancelledError
        if (error := self.script.pop(0)) is not None:
            raise error
        super().record(store)


def run(folder: Path, script: list[Exception | None], made: Callable[[LiveSnapshot], None] = lambda _: None) -> None:
    """Record as often as the script says, without the time between."""
    drive = Drive(collection_of(["http://a.example/"]), answer)
    recorder = Failing(drive, script)

    async def with_store(function: Callable[[FrontierStore], object]) -> object:
        return function(drive.store)

    async def recorded() -> None:
        task = asyncio.create_task(RecordLoop(recorder, with_store, folder, made=made).run())
        await asyncio.wait([task])

    asyncio.run(recorded())


def without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_RECORD_S", "MINUTE_S", "EVERY_S"):
        monkeypatch.setattr(record_loop, name, 0.0)


def test_each_outage_is_reported_at_its_beginning_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of one moment does not hide the next one."""
    without_time(monkeypatch)
    full = OSError(errno.ENOSPC, "full")
    run(tmp_path, [full, full, None, None, OSError(errno.EIO, "broken")])
    assert caplog.messages == [
        f"The history of the crawl cannot be stored: {full}",
        "The history of the crawl is stored again",
        "The history of the crawl cannot be stored: [Errno 5] broken",
    ]


def test_a_snapshot_that_fails_does_not_hide_that_the_history_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_time(monkeypatch)
    (tmp_path / "file").write_text("")
    run(tmp_path / "file", [None, OSError(errno.EIO, "broken"), None])
    assert len([each for each in caplog.messages if "live snapshot of the crawl cannot be stored" in each]) == 1
    assert next(each for each in caplog.messages if "history" in each).endswith("cannot be stored: [Errno 5] broken")


def test_an_error_that_nobody_foresaw_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(snapshot: LiveSnapshot) -> None:
        raise ValueError(snapshot)

    run(tmp_path, [], refuse)
    assert caplog.messages == ["The history of the crawl is no longer recorded, because of an error"]
