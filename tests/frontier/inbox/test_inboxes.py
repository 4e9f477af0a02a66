"""Notes to a running crawl: whole or not there, in order, gone when acted on."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import resource
import stat
from typing import TYPE_CHECKING

import pytest

from tests.store.stores import active, lease
from webfountain.clock import ManualClock
from webfountain.errors import StoreError
from webfountain.frontier.inbox.inboxes import REFUSED_KEPT, Inbox
from webfountain.frontier.inbox.notes import DeliveryResult, ForgetNote, NowNote
from webfountain.records import Fetch, FetchResult, Link
from webfountain.repository.repository import Repository
from webfountain.repository.warc_writer import Capture
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from pathlib import Path


def test_notes_come_out_as_they_went_in_oldest_first(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    notes: list[NowNote | ForgetNote] = [
        NowNote(("https://a.org/", "https://b.org/x")),
        ForgetNote("https://a.org"),
        ForgetNote("https://a.org", "https://a.org/y"),
    ]
    for note in notes:
        inbox.put(note)
    assert [received.note for received in inbox.waiting()] == notes


def test_an_inbox_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert Inbox(tmp_path / "inbox").waiting() == []


def test_a_note_that_was_done_does_not_come_again(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.put(NowNote(("https://a.org/",)))
    inbox.put(NowNote(("https://b.org/",)))
    first = inbox.waiting()[0]
    inbox.done([first])
    inbox.done([first])
    assert [received.note for received in inbox.waiting()] == [NowNote(("https://b.org/",))]


def test_a_draft_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / "1.tmp").write_text('{"note": "now", "urls": [')
    assert Inbox(tmp_path).waiting() == []


@pytest.mark.parametrize("text", ["", "{", '{"note": "other"}', '{"note": "now", "urls": 7}', "[]"])
def test_a_file_that_is_no_note_is_set_aside_and_the_next_one_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "0.json").write_text(text)
    inbox = Inbox(tmp_path)
    inbox.put(NowNote(("https://a.org/",)))
    assert len(inbox.waiting()) == 1
    assert (tmp_path / "0.refused").read_text() == text


def test_what_is_no_plain_file_is_set_aside(tmp_path: Path) -> None:
    """A folder, a link, a pipe: each ended every later start."""
    (tmp_path / "0.json").mkdir()
    (tmp_path / "elsewhere").write_text('{"note": "now", "urls": []}')
    (tmp_path / "1.json").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "2.json").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "3.json")
    inbox = Inbox(tmp_path)
    inbox.put(NowNote(("https://a.org/",)))
    assert [received.note for received in inbox.waiting()] == [NowNote(("https://a.org/",))]
    assert sorted(path.name for path in tmp_path.glob("*.refused")) == [f"{number}.refused" for number in range(4)]
    assert (tmp_path / "elsewhere").exists()


BAD_URLS = ("http://[::1/", "garbage", "ftp://a.org/", "file:///etc/passwd", "http://u:p@a.org/", "")


def test_urls_of_a_note_are_judged_as_seeds_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A line break in a URL was sent as a header of its own; what is no URL ended this and every later start."""
    store, inbox = MemoryStore(period_s=60.0), Inbox(tmp_path)
    inbox.put(NowNote((*BAD_URLS, "HTTPS://A.org:443/x#part", "https://a.org/y HTTP/1.1\r\nX: y")))
    assert inbox.deliver(store, None, at=5.0) == DeliveryResult(immediate=2)
    assert {record.url for _, record in store.pages.records()} == {
        "https://a.org/x",
        "https://a.org/y%20HTTP/1.1X:%20y",
    }
    (refused,) = tmp_path.iterdir()
    assert json.loads(refused.read_bytes()) == {"note": "now", "urls": list(BAD_URLS)}
    assert len(caplog.messages) == 1
    assert inbox.waiting() == []


@pytest.mark.parametrize(
    "note", [ForgetNote("http://[::1"), ForgetNote("https://a.org", "https://b.org/x"), ForgetNote("x", "y")]
)
def test_a_note_to_forget_what_is_no_site_is_set_aside(tmp_path: Path, note: ForgetNote) -> None:
    store, inbox = MemoryStore(period_s=60.0), Inbox(tmp_path)
    known(store, "https://a.org/1")
    inbox.put(note)
    assert inbox.deliver(store, None, at=5.0) == DeliveryResult()
    assert [path.suffix for path in tmp_path.iterdir()] == [".refused"]


def test_too_many_open_files_put_notes_off_and_lose_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It ended the crawl with a traceback."""
    store, inbox = MemoryStore(period_s=60.0), Inbox(tmp_path)
    inbox.put(NowNote(("https://a.org/",)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), hard))
    held = []
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open(tmp_path, os.O_RDONLY))
    try:
        assert [inbox.deliver(store, None, at=5.0) for _ in range(3)] == [DeliveryResult()] * 3
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(caplog.messages) == 1, "said once"
    assert inbox.deliver(store, None, at=6.0) == DeliveryResult(immediate=1)


def test_leftovers_are_swept_and_what_is_set_aside_is_bounded(tmp_path: Path) -> None:
    for number in range(REFUSED_KEPT + 20):
        (tmp_path / f"{number:03d}.refused").touch()
    (tmp_path / "old.tmp").touch()
    os.utime(tmp_path / "old.tmp", (1.0, 1.0))
    (tmp_path / "new.tmp").touch()
    Inbox(tmp_path).waiting()
    assert len(list(tmp_path.glob("*.refused"))) == REFUSED_KEPT
    assert not (tmp_path / "000.refused").exists()
    assert [path.name for path in tmp_path.glob("*.tmp")] == ["new.tmp"]


def test_only_the_owner_reads_the_folder(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    inbox.put(ForgetNote("https://a.org"))
    assert stat.S_IMODE((tmp_path / "inbox").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write a note there"):
        Inbox(tmp_path / "file" / "inbox").put(ForgetNote("https://a.org"))


def known(store: MemoryStore, *urls: str) -> None:
    store.queues.discover([Link(url=url, site=site_of(url), key=fingerprint(url)) for url in urls], at=1.0)


def test_delivered_urls_are_on_the_immediate_queue_and_their_note_is_gone(tmp_path: Path) -> None:
    store, inbox = MemoryStore(period_s=60.0), Inbox(tmp_path)
    inbox.put(NowNote(("https://a.org/2", "https://a.org/1")))
    assert inbox.deliver(store, None, at=5.0) == DeliveryResult(immediate=2)
    leases = lease(store, active(store, "https://a.org"), 10, queue="immediate")
    assert [one.record.url for one in leases] == ["https://a.org/2", "https://a.org/1"]
    assert inbox.waiting() == []


def test_a_forgotten_page_and_a_forgotten_site_are_gone_and_barred(tmp_path: Path) -> None:
    store, inbox = MemoryStore(period_s=60.0), Inbox(tmp_path)
    known(store, "https://a.org/1", "https://a.org/2", "https://b.org/1", "https://b.org/2")
    barred = (ForgetNote("https://a.org", "https://a.org/1"), ForgetNote("https://b.org"))
    for note in barred:
        inbox.put(note)
    assert inbox.deliver(store, None, at=5.0) == DeliveryResult(forgotten=3, barred=barred)
    assert [record.url for _, record in store.pages.records()] == ["https://a.org/2"]
    known(store, "https://a.org/1", "https://b.org/3")
    assert len(list(store.pages.records())) == 1


def test_forgetting_erases_the_copies_of_what_is_forgotten_only(tmp_path: Path) -> None:
    """Against the real repository: the other page's copy still reads."""
    store, inbox = MemoryStore(period_s=60.0), Inbox(tmp_path / "inbox")
    repository = Repository(tmp_path / "repository", clock=ManualClock(1e9))
    copies = repository.write([capture("https://a.org/gone", b"gone"), capture("https://a.org/kept", b"kept")])
    repository.settled(copies)
    inbox.put(ForgetNote("https://a.org", "https://a.org/gone"))
    delivered = inbox.deliver(store, repository, at=5.0)
    assert delivered.erased >= 1
    kept = copies[1]
    assert kept is not None
    assert repository.read(kept, "https://a.org/kept").body == b"kept"
    repository.close()
    assert not [
        path for path in (tmp_path / "repository").glob("*.warc.gz") if b"gone" in gzip.decompress(path.read_bytes())
    ]


def capture(url: str, body: bytes) -> Capture:
    fetch = Fetch(id=1, kind="page", url=url, site=site_of(url), address="127.0.0.1")
    return Capture(
        FetchResult(fetch=fetch, at=1e9, seconds=0.1, status=200, headers=(("content-type", "text/plain"),), body=body)
    )
