"""What a crawl keeps is its owner's alone: it may know an intranet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.test_damaged_files import crawl
from webfountain.frontier.inbox.inboxes import FOLDER, Inbox
from webfountain.frontier.inbox.notes import NowNote
from webfountain.sandbox.crash_guard import CrashSuspects

if TYPE_CHECKING:
    from pathlib import Path


def test_no_file_of_a_store_or_its_copies_can_be_read_by_others(tmp_path: Path) -> None:
    """Also under a mask that hides nothing, and folders made below the store's can be entered by nobody else."""
    before = os.umask(0)
    try:
        folder = tmp_path / "store"
        crawl(folder, at=1_000_000.0)
        Inbox(folder / FOLDER).put(NowNote(("http://a.example/",)))
        suspects = CrashSuspects(folder)
        suspects.close()
    finally:
        os.umask(before)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 15
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}, [
        str(path.relative_to(folder)) for path in files if path.stat().st_mode & 0o077
    ]
    for name in ("db", "links", "link-journal", "scores", "repository", FOLDER):
        assert (folder / name).stat().st_mode & 0o077 == 0, name
