"""The positions of named readers, also damaged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.stores import link
from webfountain.api.opening import open_stored
from webfountain.api.reader import ReaderPlaces
from webfountain.errors import InputError, StoreError
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"garbage\n"])
def test_a_damaged_position_is_refused_in_one_line_and_can_be_replaced(tmp_path: Path, content: bytes) -> None:
    url = f"rocksdb://{tmp_path}/store"
    store = open_store(url, collection="test", period_s=10.0)
    store.queues.discover([link(1)], at=1.0)
    store.close()
    collection = open_stored(url)
    collection.places().keep("mine", collection.changes_end())
    assert collection.changes(reader="mine") == []
    (tmp_path / "store" / "readers" / "mine").write_bytes(content)
    with pytest.raises(InputError, match=r"is not a cursor of this store's change log; read the whole list first"):
        collection.changes(reader="mine")
    collection.places().keep("mine", collection.changes_end())
    assert collection.changes(reader="mine") == []
    collection.close()


def test_a_position_on_a_server_that_is_damaged_is_no_cursor_either() -> None:
    board = MemoryStore(period_s=10.0).board
    board.put_value("reader/mine", b"\xff")
    assert ReaderPlaces(board, None).cursor("mine") == "\N{REPLACEMENT CHARACTER}"


def test_a_position_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    places = ReaderPlaces(MemoryStore(period_s=10.0).board, tmp_path)
    (tmp_path / "readers" / "mine").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"readers/mine: the reader's position cannot be read: Is a directory"):
        places.cursor("mine")


def test_no_reader_has_the_name_of_another_ones_draft(tmp_path: Path) -> None:
    """To write a position would remove the other's."""
    places = ReaderPlaces(MemoryStore(period_s=10.0).board, tmp_path)
    with pytest.raises(InputError, match=r"not \.tmp at the end"):
        places.keep("mine.tmp", "1")
    places.keep("mine.tmp.2", "1")
    places.keep("mine", "2")
    assert (places.cursor("mine.tmp.2"), places.cursor("mine")) == ("1", "2")
