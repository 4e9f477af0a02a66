"""Records survive their bytes, and numbers' bytes sort as the numbers do."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.stores import SITE
from webfountain.records import STATES, Copy, Link, PageRecord, SiteState
from webfountain.store.codec import (
    decode_page,
    decode_state,
    encode_page,
    encode_state,
    first_record,
    from_sortable,
    to_sortable,
)
from webfountain.store.embedded.keys import (
    NEVER,
    PAGE,
    is_record,
    never_suffix,
    pack_links,
    pack_waiting,
    pointer,
    waiting_record,
)
from webfountain.store.lanes import class_of

numbers = st.floats(allow_nan=False)
texts = st.text(max_size=20)
stable = settings(deadline=None, derandomize=True, max_examples=100)


@stable
@given(numbers, numbers)
def test_sortable_bytes_sort_as_numbers_and_come_back(a: float, b: float) -> None:
    assert from_sortable(to_sortable(a)) == a
    if a != b:
        assert (to_sortable(a) < to_sortable(b)) == (a < b)


@stable
@given(numbers, numbers)
def test_the_never_crawled_queue_sorts_by_class_of_importance_then_arrival(a: float, b: float) -> None:
    mine, yours = class_of(a), class_of(b)
    assert mine >= yours or a >= b
    if mine == yours:
        assert never_suffix(mine, 1) < never_suffix(yours, 2)
    else:
        assert (never_suffix(mine, 2) < never_suffix(yours, 1)) == (mine < yours)


@stable
@given(
    st.builds(
        PageRecord,
        url=texts,
        state=st.sampled_from(STATES),
        importance=numbers,
        bucket=st.integers(0, 255),
        last_crawled=st.none() | numbers,
        status=st.none() | st.integers(100, 599),
        error=st.none() | texts,
        history=st.binary(max_size=30),
        copy=st.none() | st.builds(Copy, st.integers(0, 2**32), st.integers(0, 2**40), st.integers(0, 2**40)),
        request=st.none() | st.binary(max_size=9),
        verdict=st.sampled_from((None, "new", "refused_by_robots")),
    )
)
def test_a_page_record_survives_its_bytes(record: PageRecord) -> None:
    text = encode_page(record)
    assert decode_page(text) == record
    assert is_record(text)


@stable
@given(
    texts,
    texts,
    numbers,
    st.binary(min_size=8, max_size=20),
    st.none() | st.binary(max_size=9),
    st.sampled_from((0.0, 0.25)),
    st.sampled_from(("", SITE + "/home", "https://b.example/x")),
)
def test_a_never_crawled_page_survives_its_queue_entry(
    start: str, rest: str, importance: float, key: bytes, request: bytes | None, trust: float, source: str
) -> None:
    link = Link(start + rest, SITE, key, 3, "favor", importance, source, request, trust)
    page_key = PAGE + bytes(8) + key
    [pointing], [(entry, value)] = pack_links({page_key: link}, arrival=9, first_seen=4.5)
    record = first_record(link, 4.5)
    suffix = never_suffix(class_of(importance), 9)
    assert (pointing, entry) == ((page_key, pointer(suffix)), NEVER + bytes(8) + suffix)
    assert waiting_record(SITE, entry, value) == (key, record)
    assert waiting_record(SITE, entry, pack_waiting(SITE, key, record)) == (key, record)


def test_a_record_of_a_version_with_fewer_fields_is_read_with_the_defaults() -> None:
    short = msgspec.msgpack.encode(["https://a.example/", "crawled", "favor", 0.5, 9])
    assert decode_page(short) == PageRecord("https://a.example/", "crawled", "favor", 0.5, 9)


def test_a_site_state_survives_its_bytes() -> None:
    state = SiteState(5.0, 2, b"\xff", 3.0, False, 1, 7.5, (("https://a.example/s.xml", 0.0),))
    assert decode_state(encode_state(state)) == state
