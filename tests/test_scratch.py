"""A temporary folder goes with its process, or with the next process when that one was killed."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from webfountain.scratch import Scratch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(folder: Path) -> None:
    os.utime(folder, (1.0, 1.0))


def test_a_scratch_folder_is_deleted_when_it_is_closed(temporary: Path) -> None:
    with Scratch() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").touch()
    assert list(temporary.iterdir()) == []


def test_the_scratch_folder_of_a_killed_process_is_deleted_with_the_next_one(temporary: Path) -> None:
    left = Scratch()
    os.close(left._lock)  # as the system does
    age(left.path)
    with Scratch() as folder:
        assert list(temporary.iterdir()) == [folder]


def test_a_scratch_folder_in_use_or_newly_made_is_kept(temporary: Path) -> None:
    used, newborn = Scratch(), Scratch()
    os.close(newborn._lock)
    age(used.path)
    with Scratch() as folder:
        assert set(temporary.iterdir()) == {folder, used.path, newborn.path}
