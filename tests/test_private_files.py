"""Files appear whole or not at all, and are the owner's alone."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from webfountain.private_files import draft_of, replaced

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_when_its_content_is_complete(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(b"before")
    path.chmod(0o644)
    (tmp_path / ".list.json.tmp").write_bytes(b"of a process that was killed")
    with replaced(path, durable=durable) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_could_not_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), replaced(path) as file:
        file.write(bytes(1 // 0))
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_is_gone_whether_its_file_was_written_or_not(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    with pytest.raises(ZeroDivisionError), draft_of(path) as draft:
        draft.write_bytes(bytes(1 // (draft.write_bytes(b"half") - 4)))
    assert list(tmp_path.iterdir()) == []
    with draft_of(path) as draft:
        draft.write_bytes(b"whole")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"whole"]


def test_a_pipe_or_a_name_of_the_output_is_not_replaced(tmp_path: Path) -> None:
    pipe, output = tmp_path / "pipe", tmp_path / "output"
    os.mkfifo(pipe)
    output.symlink_to("/proc/self/fd/1")  # as /dev/stdout
    for path in (pipe, output):
        with pytest.raises(OSError, match="is a device or a pipe, not a file"), draft_of(path) as draft:
            draft.write_bytes(b"report")
    assert pipe.is_fifo()
    assert output.is_symlink()
    assert len(list(tmp_path.iterdir())) == 2
