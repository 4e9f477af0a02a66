"""A paused crawl asks nothing, through restarts, until it is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import Pause, Resume, is_paused

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch


def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    del at
    if fetch.kind == "robots":
        return 404, {}, b"", 0.1
    return 200, {"content-type": "text/html"}, b"".join(b"<a href='/%d'>" % n for n in range(30)), 0.1


def test_a_paused_crawl_asks_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    drive = Drive(collection_of(["http://a.example/"]), answer, inbox=inbox)
    drive.run(seconds=10)
    assert not is_paused(drive.store.board)
    inbox.put(Pause())
    drive.run(seconds=2)
    asked = len(drive.log)
    drive.run(seconds=600)
    assert len(drive.log) == asked > 1
    assert "paused" in drive.frontier.progress.limit(drive.frontier.now())

    again = Drive(drive.collection, answer, inbox=inbox, store=drive.store, clock=drive.clock)
    again.run(seconds=600)
    assert again.log == [], "it holds through a restart"
    inbox.put(Resume())
    again.run(seconds=600)
    assert len(again.log) > 10
    assert not is_paused(drive.store.board)
