"""Pickles of strangers are read as data or refused; nothing of them is ever run."""

from __future__ import annotations

import collections
import datetime
import decimal
import os
import pickle
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.crawl.plain_pickle import MAX_BYTES, PickleRefused, read_pickle

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.binary(), inner),
    max_leaves=8,
)


class Runs:
    """Makes a pickle that would run something."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self._reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self._reduced


@given(DATA, st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_plain_data_comes_back_as_it_was(value: Any, protocol: int) -> None:
    try:
        found = read_pickle(pickle.dumps(value, protocol=protocol))
    except PickleRefused:
        assert protocol == 2, "which names a codec for bytes"
        return
    assert found == value


def test_times_numbers_and_containers_come_back() -> None:
    value = [
        {1, 2},
        frozenset([3]),
        collections.OrderedDict(a=1),
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        datetime.timedelta(3),
        decimal.Decimal("1.5"),
    ]
    assert read_pickle(pickle.dumps(value, protocol=-1)) == value


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (os.system, ("touch {}",)),
        (eval, ("open({!r}, 'w')",)),
        (exec, ("open({!r}, 'w')",)),
        (open, ("{}", "w")),
        (getattr, ("", "join")),
        (bytearray, (10**12,)),
        (print, ("x",)),
        (__import__, ("antigravity",)),
    ],
)
def test_what_would_run_anything_is_refused_and_runs_nothing(
    tmp_path: Any, call: Any, arguments: tuple[Any, ...]
) -> None:
    trap = tmp_path / "trap"
    given_ = [each.format(str(trap)) if isinstance(each, str) else each for each in arguments]
    with pytest.raises(PickleRefused, match="it names"):
        read_pickle(pickle.dumps({"url": Runs(call, *given_)}))
    assert not trap.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"no pickle",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
        b"(i__main__\nx\n.",
        b"Pid\n.",
        pickle.dumps(1)[:-1],
        b"\x80\x04" + b"\x95" + b"\xff" * 8,
        pickle.dumps(uuid.UUID(int=7)),
    ],
)
def test_a_pickle_that_is_not_plain_data_is_refused(data: bytes) -> None:
    with pytest.raises(PickleRefused):
        read_pickle(data)


def test_a_value_that_unfolds_without_end_is_refused() -> None:
    bomb: list[Any] = ["x"]
    for _ in range(40):
        bomb = [bomb, bomb]
    with pytest.raises(PickleRefused, match="contains more than 1,000,000 values"):
        read_pickle(pickle.dumps(bomb))
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PickleRefused, match="contains more than 1,000,000 values"):
        read_pickle(pickle.dumps(loop))
    with pytest.raises(PickleRefused, match="bytes long"):
        read_pickle(b"x" * (MAX_BYTES + 1))
