"""The index of a WARC file: the same rows whether it is there, behind, wrong or absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.repository.captures import capture, url_of
from webfountain.repository.index import beside, pack, recover, rows_of, summary
from webfountain.repository.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of four copies and two revisits."""
    repository = Repository(tmp_path)
    repository.write([capture(url_of(n), b"body %d" % n) for n in range(4)])
    repository.write([capture(url_of(n), b"", status=304) for n in range(2)])
    repository.close()
    (found,) = tmp_path.glob("*.warc.gz")
    return found


def test_the_index_has_every_record_in_order(path: Path) -> None:
    """Rows follow each other without a gap, from the first byte to the last."""
    rows = rows_of(path)
    assert [row.kind for row in rows] == ["warcinfo"] + ["response", "request"] * 4 + ["revisit", "request"] * 2
    assert [row.offset for row in rows] == [0, *(row.end for row in rows[:-1])]
    assert rows[-1].end == path.stat().st_size
    assert pack(rows) == beside(path, ".index").read_bytes()


def test_an_index_that_is_absent_behind_ahead_or_wrong_makes_no_difference(path: Path) -> None:
    """To a reader, which changes nothing; after recovery the index on disk is right again."""
    rows, right = rows_of(path), beside(path, ".index").read_bytes()
    index = beside(path, ".index")
    for wrong in (right[:26], right[:-5], right[:39] + right[52:], right[:40] + b"\xff" * 3 + right[43:], b"\xff" * 39):
        index.write_bytes(wrong)
        assert rows_of(path) == rows
        assert index.read_bytes() == wrong
    for wrong in (right[:26], right[:-5], right + b"\xff" * 13, b"\xff" * 39):
        index.write_bytes(wrong)
        assert recover(path).size == path.stat().st_size
        assert index.read_bytes() == right
    index.unlink()
    assert rows_of(path) == rows
    assert recover(path).size == path.stat().st_size
    assert index.read_bytes() == right


def test_no_flipped_bit_of_a_place_hides_a_record(path: Path) -> None:
    """A length that was wrong was believed where no other row showed it: the records after it were not found."""
    rows, right = rows_of(path), beside(path, ".index").read_bytes()
    for bit in range(len(right) * 8):
        if bit // 8 % 13 == 12:
            continue  # the kind: who needs it reads the record
        wrong = bytearray(right)
        wrong[bit // 8] ^= 1 << bit % 8
        beside(path, ".index").write_bytes(wrong)
        assert rows_of(path) == rows, bit


def test_a_summary_counts_copies_with_their_requests_and_not_those_of_revisits(path: Path) -> None:
    """It is what compaction would keep if all copies were live."""
    rows = rows_of(path)
    assert summary(path).records == len(rows)
    assert summary(path).responses == 4
    assert summary(path).copy_bytes == rows[8].end - rows[1].offset
