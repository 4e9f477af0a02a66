"""Provenance in a few bytes: what it says comes back, it stays within its bound, and numbers of rules do not lie."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webfountain.policy.patterns import compile_pattern
from webfountain.policy.provenance import (
    UNRECORDED,
    Arrival,
    Cause,
    Provenance,
    arrival_of,
    arrived,
    numbered,
    rule_number,
    was_added,
)
from webfountain.policy.tables import RuleTable, SwitchTable, WhenTable

SWITCH = SwitchTable(WhenTable(text=compile_pattern("casino"), count=3), "distrust")

reported = st.builds(
    Provenance,
    arrival=st.sampled_from(get_args(Arrival)[1:]),
    cause=st.sampled_from(get_args(Cause)),
    rule=st.sampled_from([b"", b"\x00\xff"]),
    at=st.none() | st.integers(0, 2**32 - 1),
    links=st.integers(0, 100_000),
)


@settings(deadline=None, derandomize=True)
@given(reported)
def test_what_is_kept_comes_back_in_eight_bytes_at_most(given: Provenance) -> None:
    data = given.encode()
    assert len(data) <= 8
    found = Provenance.decode(data)
    assert arrival_of(data) == found.arrival
    assert found == msgspec.structs.replace(given, links=found.links)
    assert found.links == given.links or (found.links == 0 and given.rule and given.at is not None)


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=12))
def test_any_bytes_are_read(data: bytes) -> None:
    assert isinstance(Provenance.decode(data), Provenance)


def test_a_plain_link_takes_two_bytes_and_a_store_of_before_none() -> None:
    assert len(arrived("link", links=60)) == 2
    assert Provenance.decode(b"") == UNRECORDED
    assert UNRECORDED.encode() == b""


def test_an_added_link_is_a_link_and_stays_added_if_the_cause_changes() -> None:
    data = arrived("link", links=60, is_added=True)
    assert len(data) == 2
    assert (arrival_of(data), was_added(data), was_added(arrived("link", links=60))) == ("link", True, False)
    found = Provenance.decode(data)
    assert (found.arrival, found.is_added, found.encode()) == ("link", True, data)
    assert was_added(found.because("switch", at=1_700_000_000, rule=b"ab").encode())


def test_a_later_cause_keeps_how_the_page_came_in_and_when_it_applied() -> None:
    found = Provenance.decode(arrived("link", links=4)).because("switch", at=1_700_000_000.9, rule=b"ab")
    assert found == Provenance("link", "switch", b"ab", 1_700_000_000, 4)


@pytest.mark.parametrize("at", [-5.0, 1e12])
def test_a_clock_that_is_wrong_by_ages_breaks_nothing(at: float) -> None:
    assert Provenance.decode(UNRECORDED.because("edit", at=at).encode()).cause == "edit"


def test_a_rule_is_named_by_what_it_says_wherever_it_stands_and_an_edited_one_is_another() -> None:
    same = SwitchTable(WhenTable(text=compile_pattern("casino"), count=3), "distrust")
    other = SwitchTable(WhenTable(text=compile_pattern("casino"), count=4), "distrust")
    assert rule_number(SWITCH) == rule_number(same) != rule_number(other)
    assert numbered([other, SWITCH]) == {rule_number(other): 0, rule_number(SWITCH): 1}
    assert rule_number(RuleTable("a.org", policy="favor")) != rule_number(RuleTable("b.org", policy="favor"))
