"""Flights lie beside their requests, and are settled once, after all that came of them in memory alone."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from webfountain.crawl.flight import CURRENT, Flight, arrive, depart, flight_of, origin_of, replaced
from webfountain.download.fetcher import terms_of
from webfountain.policy.tables import NetworkTable, PolitenessTable
from webfountain.records import Fetch

if TYPE_CHECKING:
    from webfountain.crawl.flight import Landings

TERMS = terms_of(PolitenessTable(), NetworkTable(), lambda fetch, url: 0.0)


class Ground:
    """Where flights land; nobody asks in these tests."""


def flight(parent: Flight | None = None) -> Flight:
    if parent is not None:
        parent.wait()
    return Flight(
        Fetch(0, "page", "http://a.test/", "http://a.test", None),
        TERMS,
        cast("Landings", Ground()),
        own=False,
        parent=parent,
    )


def test_a_flight_is_of_the_request_that_was_handed_out_and_of_no_copy() -> None:
    request, one = Request("http://a.test/"), flight()
    depart(request, one)
    assert flight_of(request) is one
    assert [flight_of(other) for other in (request.copy(), request.replace(dont_filter=True))] == [None, None]
    assert request.meta == copy.deepcopy(request.meta) == {}
    assert arrive(request) is one
    assert (flight_of(request), arrive(request)) == (None, None)


def test_a_request_that_is_gone_leaves_no_flight_behind() -> None:
    request, one = Request("http://a.test/"), flight()
    depart(request, one)
    gone = weakref.ref(one.landing)
    del request, one
    gc.collect()
    assert gone() is None


def test_a_request_belongs_to_the_flight_that_it_replaces_or_to_the_one_being_processed() -> None:
    one, other, target = flight(), flight(), Request("http://a.test/target")
    replaced(one, by=target)
    token = CURRENT.set(other)
    try:
        assert (origin_of(target), origin_of(Request("http://a.test/"))) == (one, other)
    finally:
        CURRENT.reset(token)
    assert origin_of(target) is None


@given(st.data(), st.lists(st.integers(0, 9), max_size=10))
def test_each_flight_is_settled_once_when_it_and_all_its_requests_have_ended(
    data: st.DataObject, parents: list[int]
) -> None:
    flights = [flight()]
    for i, parent in enumerate(parents):
        flights.append(flight(flights[min(parent, i)]))
    order = data.draw(st.permutations(flights))
    settled: list[Flight] = []
    for one in order:
        for done in one.end():
            assert done not in settled
            settled.append(done)
            below = [other for other in flights if other.parent is done]
            assert done.ended
            assert below == []
    assert set(settled) == set(flights)
    assert not any(one.waits for one in flights)


@pytest.mark.parametrize("late", [1, 2])
def test_what_a_task_yields_long_after_its_page_is_settled_changes_nothing(late: int) -> None:
    parent = flight()
    assert list(parent.end()) == [parent]
    children = [flight(parent) for _ in range(late)]
    assert not parent.waits
    assert [list(child.end()) for child in children] == [[child] for child in children]
