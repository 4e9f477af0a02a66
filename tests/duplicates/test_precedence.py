"""Which of two pages that repeat each other stands: an order that no fetch changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis.strategies import builds, floats, none, sampled_from

from tests.frontier.drive import collection_of
from webfountain.duplicates.precedence import Precedence
from webfountain.records import PageRecord

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

PRECEDENCE = Precedence(collection_of(["https://seed.example/"], collection='scope = "any"'))
SITES = ("http://www.seed.example", "http://a.example", "http://b.example")
URLS = [f"{site}/{name}" for site in SITES for name in "xy"]


def records() -> SearchStrategy[PageRecord]:
    return builds(
        PageRecord,
        url=sampled_from(URLS),
        state=sampled_from(["crawled", "never-crawled"]),
        trust=sampled_from([0.0, 0.5, 1.0]),
        first_seen=floats(0, 3).map(round),
        duplicate_of=none(),
    )


@pytest.mark.parametrize("seed", ["https://seed.example/x", "http://seed.example/", "https://www.seed.example/"])
def test_a_seeds_page_goes_before_all_others_whatever_form_its_site_has(seed: str) -> None:
    other = PageRecord("http://a.example/", state="crawled", trust=1.0, first_seen=1.0)
    page = PageRecord(seed, trust=0.1, first_seen=2.0)
    assert PRECEDENCE.outranks(page, other)
    assert not PRECEDENCE.outranks(other, page, before=other)


def test_the_more_trusted_goes_before_the_older_and_age_counts_for_held_pages_alone() -> None:
    old = PageRecord("http://a.example/", state="crawled", trust=0.5, first_seen=1.0)
    new = PageRecord("http://b.example/", state="crawled", trust=0.6, first_seen=2.0)
    assert PRECEDENCE.outranks(new, old)
    same = msgspec.structs.replace(new, trust=0.5)
    assert not PRECEDENCE.outranks(same, old, before=same)
    assert PRECEDENCE.outranks(old, same, before=old)
    assert not PRECEDENCE.outranks(old, same), "it was not held: it comes after who is"


@given(one=records(), other=records())
def test_of_two_pages_at_most_one_goes_before_the_other(one: PageRecord, other: PageRecord) -> None:
    both = [PRECEDENCE.outranks(one, other, before=one), PRECEDENCE.outranks(other, one, before=other)]
    assert sum(both) <= 1
    if one.state == other.state == "crawled":
        assert sum(both) == (not PRECEDENCE.is_equal(one, other))
