"""Notes to a running crawl: whole or not there, in order, gone when acted on."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from webfountain.errors import StoreError
from webfountain.frontier.inbox import Forget, Inbox, Now

if TYPE_CHECKING:
    from pathlib import Path


def test_notes_come_out_as_they_went_in_oldest_first(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    notes = [
        Now(("https://a.org/", "https://b.org/x")),
        Forget("https://a.org"),
        Forget("https://a.org", "https://a.org/y"),
    ]
    for note in notes:
        inbox.put(note)
    assert [received.note for received in inbox.waiting()] == notes


def test_an_inbox_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert Inbox(tmp_path / "inbox").waiting() == []


def test_a_note_that_was_done_does_not_come_again(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.put(Now(("https://a.org/",)))
    inbox.put(Now(("https://b.org/",)))
    first = inbox.waiting()[0]
    inbox.done(first)
    inbox.done(first)
    assert [received.note for received in inbox.waiting()] == [Now(("https://b.org/",))]


def test_a_draft_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / "1.tmp").write_text('{"note": "now", "urls": [')
    assert Inbox(tmp_path).waiting() == []


@pytest.mark.parametrize("text", ["", "{", '{"note": "other"}', '{"note": "now", "urls": 7}', "[]"])
def test_a_file_that_is_no_note_is_set_aside_and_the_next_one_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "0.json").write_text(text)
    inbox = Inbox(tmp_path)
    inbox.put(Now(("https://a.org/",)))
    assert len(inbox.waiting()) == 1
    assert (tmp_path / "0.refused").read_text() == text


def test_only_the_owner_reads_the_folder(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    inbox.put(Forget("https://a.org"))
    assert stat.S_IMODE((tmp_path / "inbox").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot leave a note there"):
        Inbox(tmp_path / "file" / "inbox").put(Forget("https://a.org"))
