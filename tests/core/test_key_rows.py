"""A table of rows gives each key the row that a dict would give it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.key_rows import KeyRows, keys_of

KEYS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1)), max_size=50)


@given(st.lists(KEYS, max_size=20))
def test_keys_get_rows_in_the_order_in_which_they_come_first(batches: list[list[int]]) -> None:
    rows, expected = KeyRows(), dict[int, int]()
    for batch in batches:
        keys = np.array(batch, dtype=np.uint64)
        assert rows.find(keys).tolist() == [expected.get(key, 0) for key in batch]
        for key in batch:
            expected.setdefault(key, len(expected) + 1)
        assert rows.rows(keys).tolist() == [expected[key] for key in batch]
    assert (len(rows), rows.keys.tolist()) == (len(expected), list(expected))


def test_a_table_that_grew_knows_all_its_keys() -> None:
    keys = np.random.default_rng(3).permutation(np.arange(30_000, dtype=np.uint64) << np.uint64(40))
    rows = KeyRows()
    for batch in np.array_split(keys, 40):
        rows.rows(batch)
    assert rows.find(keys).tolist() == list(range(1, len(keys) + 1))
    assert KeyRows(keys[::2]).find(keys[:4]).tolist() == [1, 0, 2, 0]


def test_keys_are_read_from_joined_fingerprints() -> None:
    assert keys_of(bytes(7) + b"\x05" + b"\xff" * 8).tolist() == [5, 2**64 - 1]
