"""A page that a process died of goes last and alone; three deaths of it alone, and it is given up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from webfountain.records import Lease, LeaseId, PageRecord
from webfountain.sandbox.crash_guard import CRASHES, CrashSuspects

if TYPE_CHECKING:
    from pathlib import Path

DYING = """
import os, signal, sys
from contextlib import ExitStack
from pathlib import Path
from webfountain.sandbox.crash_guard import CrashSuspects
suspects = CrashSuspects(Path(sys.argv[1]))
with ExitStack() as stack:
    for url in sys.argv[2:]:
        stack.enter_context(suspects.examining(url))
    os.kill(os.getpid(), signal.SIGKILL)
"""
BAD, OTHER = "http://a.example/bad", "http://a.example/other"


def die_over(folder: Path, *urls: str) -> None:
    """Have a process killed while it examines the pages."""
    done = subprocess.run([sys.executable, "-c", DYING, str(folder), *urls], check=False)
    assert done.returncode == -signal.SIGKILL


def lease(url: str) -> Lease:
    return Lease(LeaseId("http://a.example", 1, 1), url.encode()[-8:], PageRecord(url))


def test_a_page_that_a_process_died_of_is_a_suspect_until_it_is_examined_well(tmp_path: Path) -> None:
    die_over(tmp_path, BAD)
    suspects = CrashSuspects(tmp_path)
    assert suspects.found == [BAD]
    assert not suspects.may_examine_at_once(BAD)
    assert suspects.may_examine_at_once(OTHER)
    with suspects.examining(BAD):
        assert not suspects.may_examine_at_once(OTHER)
    assert BAD not in suspects
    suspects.close()
    assert len(CrashSuspects(tmp_path)) == 0


def test_after_three_deaths_of_it_alone_a_page_is_given_up_and_may_try_again_once(tmp_path: Path) -> None:
    for _ in range(CRASHES):
        assert not CrashSuspects(tmp_path).has_crashed(BAD)
        die_over(tmp_path, BAD)
    suspects = CrashSuspects(tmp_path)
    assert suspects.has_crashed(BAD)
    assert not suspects.has_crashed(BAD)
    suspects.close()
    die_over(tmp_path, BAD)
    assert CrashSuspects(tmp_path).has_crashed(BAD)


def test_a_death_that_two_pages_explain_counts_for_neither_and_clears_neither(tmp_path: Path) -> None:
    die_over(tmp_path, BAD, OTHER)
    for _ in range(CRASHES - 1):
        die_over(tmp_path, BAD)
    suspects = CrashSuspects(tmp_path)
    assert OTHER in suspects
    assert not suspects.has_crashed(BAD)
    suspects.close()
    die_over(tmp_path, BAD)
    suspects = CrashSuspects(tmp_path)
    assert suspects.has_crashed(BAD)
    assert OTHER in suspects


def test_a_file_that_is_cut_meanwhile_ends_no_process_and_remembers_the_next_page(tmp_path: Path) -> None:
    cut = f"os.truncate({str(tmp_path / 'examined')!r}, 0)"
    program = DYING.replace("        stack.enter_context", f"        {cut}\n        stack.enter_context")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path), BAD], check=False)
    assert done.returncode == -signal.SIGKILL
    assert CrashSuspects(tmp_path).found == [BAD]


def test_an_exception_is_no_death(tmp_path: Path) -> None:
    suspects = CrashSuspects(tmp_path)
    with pytest.raises(ValueError, match="x"), suspects.examining(BAD):
        raise ValueError("x")
    suspects.close()
    assert CrashSuspects(tmp_path).found == []


def test_a_suspect_is_examined_while_no_other_page_is(tmp_path: Path) -> None:
    die_over(tmp_path, BAD)
    suspects, seen = CrashSuspects(tmp_path), []
    begun, go = threading.Event(), threading.Event()

    def examine(url: str) -> None:
        with suspects.examining(url):
            begun.set()
            go.wait(30)
            seen.append(url)

    first = threading.Thread(target=examine, args=(OTHER,))
    first.start()
    begun.wait(30)
    second = threading.Thread(target=examine, args=(BAD,))
    second.start()
    while suspects.may_examine_at_once(OTHER):  # until the suspect waits
        pass
    go.set()
    first.join()
    second.join()
    assert seen == [OTHER, BAD]


def test_suspects_are_given_back_until_nothing_else_is_left_of_their_site(tmp_path: Path) -> None:
    die_over(tmp_path, BAD)
    suspects = CrashSuspects(tmp_path)
    bad, other = lease(BAD), lease(OTHER)
    assert suspects.put_last([bad, other], []) == ([other], [], [bad])
    assert suspects.put_last([bad], [other]) == ([], [other], [bad])
    assert suspects.put_last([bad], []) == ([bad], [], [])


def test_files_that_make_no_sense_are_no_suspects(tmp_path: Path) -> None:
    (tmp_path / "examined").write_bytes(os.urandom(65_536))
    (tmp_path / "suspects.json").write_bytes(b"[torn")
    assert len(CrashSuspects(tmp_path)) == len(CrashSuspects(tmp_path).found) <= 16
    assert CrashSuspects(None).found == ()
