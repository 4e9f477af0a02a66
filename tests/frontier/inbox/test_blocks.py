"""What is blocked is not fetched until the block ends, through restarts; its copies stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.inbox.blocks import MAX_BLOCKS, UrlBlock, blocks_of, change_blocks
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import BlockNote, Drain, NowNote, UnblockNote
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

SEEDS = ["http://a.example/", "http://b.example/"]
DAY = 86_400.0


def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    del at
    if fetch.kind == "robots":
        return 404, {}, b"", 0.1
    links = b"".join(b"<a href='/%s/%d'>" % (part, n) for n in range(10) for part in (b"news", b"shop"))
    return 200, {"content-type": "text/html"}, b"<p>words</p>" + links, 0.1


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox")


def started(inbox: Inbox, **more: object) -> Drive:
    return Drive(collection_of(SEEDS, period="1h"), answer, inbox=inbox, **more)  # type: ignore[arg-type]


def asked_after(drive: Drive, begin: int, prefix: str) -> list[str]:
    return [url for _, _, url in drive.log[begin:] if url.startswith(prefix)]


def test_a_blocked_site_is_left_alone_until_it_is_unblocked(inbox: Inbox) -> None:
    drive = started(inbox)
    drive.run(seconds=20)
    inbox.put(BlockNote("http://a.example"))
    drive.run(seconds=5)
    begin = len(drive.log)
    drive.run(seconds=2 * DAY)
    assert asked_after(drive, begin, "http://a.example") == []
    assert len(asked_after(drive, begin, "http://b.example/")) > 50, "the others are crawled"

    again = Drive(drive.collection, answer, inbox=inbox, store=drive.store, clock=drive.clock)
    again.run(seconds=DAY)
    assert asked_after(again, 0, "http://a.example") == [], "it holds through a restart"
    inbox.put(UnblockNote("http://a.example/"))
    again.run(seconds=120)
    assert len(asked_after(again, 0, "http://a.example/")) > 10, "it goes on within moments"
    again.run(seconds=DAY)
    assert again.site("http://a.example").pages[0] == 0
    again.check_valid()


def test_a_block_ends_at_its_time(inbox: Inbox) -> None:
    inbox.put(BlockNote("http://a.example/", until=1_000_000.0 + 7200))
    drive = started(inbox)
    drive.run(seconds=7100)
    # The first moments before the inbox is read do not count: the note was there when the crawl began.
    assert len(asked_after(drive, 0, "http://a.example/")) <= 1
    drive.run(seconds=400)
    assert len(asked_after(drive, 0, "http://a.example/")) > 10


def test_a_blocked_part_of_a_site_is_not_asked_and_keeps_its_copies(inbox: Inbox) -> None:
    drive = started(inbox)
    drive.run(seconds=600)
    held = drive.page("http://a.example/shop/3")
    assert held.state == "crawled"
    inbox.put(BlockNote("http://a.example/shop/"))
    drive.run(seconds=5)
    begin = len(drive.log)
    drive.run(seconds=DAY)
    assert asked_after(drive, begin, "http://a.example/shop/") == []
    assert len(asked_after(drive, begin, "http://a.example/news/")) > 20
    kept = drive.page("http://a.example/shop/3")
    assert (kept.state, kept.digest, kept.error) == ("crawled", held.digest, "blocked")
    inbox.put(UnblockNote("http://a.example/shop/"))
    begin = len(drive.log)
    drive.run(seconds=3 * 3600)
    assert len(set(asked_after(drive, begin, "http://a.example/shop/"))) == 10
    assert drive.page("http://a.example/shop/3").error is None
    drive.check_valid()


def test_new_pages_of_a_blocked_part_are_fetched_when_it_ends(inbox: Inbox) -> None:
    inbox.put(BlockNote("http://a.example/shop/"))
    drive = started(inbox)
    drive.run(seconds=DAY)
    assert asked_after(drive, 0, "http://a.example/shop/") == []
    assert len(set(asked_after(drive, 0, "http://a.example/news/"))) == 10
    inbox.put(NowNote(("http://a.example/shop/1",)))
    drive.run(seconds=60)
    assert asked_after(drive, 0, "http://a.example/shop/") == [], "also not those that are asked for now"
    inbox.put(UnblockNote("http://a.example/shop/"))
    drive.run(seconds=DAY)
    assert len(set(asked_after(drive, 0, "http://a.example/shop/"))) == 10
    drive.check_valid()


def test_the_list_of_blocks_is_bounded_and_forgets_what_has_ended() -> None:
    store = MemoryStore(period_s=DAY, fastest_s=900.0)
    for number in range(MAX_BLOCKS + 5):
        assert change_blocks(store, UrlBlock(f"http://a.example/{number}", 10.0), blocked=True, at=0.0)
    assert len(blocks_of(store.board)) == MAX_BLOCKS
    change_blocks(store, UrlBlock("http://b.example/"), blocked=True, at=11.0)
    assert blocks_of(store.board) == (UrlBlock("http://b.example/"),)
    store.board.put_value("blocks", b"\xc1")
    assert blocks_of(store.board) == ()


def test_a_drained_process_gives_up_its_sites_and_ends(inbox: Inbox) -> None:
    drive = started(inbox)
    drive.run(seconds=10)
    inbox.put(Drain("another"))
    drive.run(seconds=5)
    assert drive.frontier.finish_reason() is None
    inbox.put(Drain("test"))
    drive.run(seconds=5)
    begin = len(drive.log)
    drive.run(seconds=600)
    assert drive.frontier.finish_reason() == "drained"
    assert len(drive.log) == begin
    assert "drained" in drive.frontier.progress.limit(drive.frontier.now())
