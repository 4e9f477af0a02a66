"""The four questions of Cho 2000 on histories whose answers are known by hand or by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.lab.evolution import evolution
from webfountain.lab.observations import Observation, PageSpan


def span(
    days: tuple[int, ...] = (),
    *,
    site: str = "a.org",
    first: int = 0,
    last: int = 100,
    at_start: bool = True,
    at_end: bool = True,
) -> PageSpan:
    return PageSpan(site, first, last, at_start, at_end, len(days), days)


def test_the_average_change_interval_is_the_time_observed_over_the_changes_seen() -> None:
    """Cho 2000, section 3.1: watched for 50 days, 5 changes: 10 days; and each class includes its upper end."""
    observed = Observation(
        [
            span(tuple(range(1, 101))),  # 1 day
            span(tuple(range(7, 99, 7)), last=91),  # 7 days
            span((10, 20, 30, 40, 50), last=50),  # 10 days
            span((60,)),  # 100 days
            span(()),
        ],
        100,
        0.0,
    )
    assert list(evolution(observed).all.change_interval.values()) == [0.2, 0.2, 0.2, 0.2, 0.2]
    assert evolution(observed).all.never_changed == 1


def test_the_second_method_doubles_the_lifespan_of_pages_that_touch_an_end_of_the_observation() -> None:
    spans = [
        span(first=10, last=14, at_start=False, at_end=False),  # 4 days by both
        span(first=0, last=5, at_end=False),  # 5 or 10 days
        span(first=80, last=100, at_start=False),  # 20 or 40
        span(),  # 100 or 200
    ]
    found = evolution(Observation(spans, 100, 0.0)).all
    assert list(found.lifespan_seen.values()) == [0.5, 0.25, 0.25, 0.0]
    assert list(found.lifespan_doubled.values()) == [0.25, 0.25, 0.25, 0.25]


def test_half_of_the_pages_have_changed_or_vanished_on_the_day_when_the_second_of_four_has() -> None:
    spans = [span((3, 50)), span(last=7, at_end=False), span((60,)), span(()), span((1,), first=1, at_start=False)]
    found = evolution(Observation(spans, 100, 0.0)).all
    assert found.at_start == 4
    assert found.half_changed_days == 7
    assert found.unchanged[2:8] == (1.0, 0.75, 0.75, 0.75, 0.75, 0.5)
    assert found.unchanged[100] == 0.25


def test_without_a_page_on_the_first_day_there_is_no_half() -> None:
    found = evolution(Observation([span(first=3, at_start=False)], 100, 0.0)).all
    assert found.half_changed_days is None
    assert found.unchanged == ()


def test_groups_are_sites_or_top_level_domains_the_largest_first() -> None:
    spans = [span(site="a.org"), span(site="b.com"), span(site="c.com"), span(site="b.com")]
    observed = Observation(spans, 100, 0.0)
    assert list(evolution(observed, group_by="site").groups) == ["b.com", "a.org", "c.com"]
    by_tld = evolution(observed, group_by="tld").groups
    assert {name: group.pages for name, group in by_tld.items()} == {".com": 3, ".org": 1}


def poisson_pages(mean: float, *, pages: int, days: int, seed: int) -> list[PageSpan]:
    """Pages whose changes are a Poisson process, as a daily visitor sees them."""
    rng = np.random.default_rng(seed)
    rate = -math.log1p(-1 / mean)
    found = []
    for _ in range(pages):
        times = np.cumsum(rng.exponential(1 / rate, 4 * int(days * rate) + 20))
        seen = np.unique(np.ceil(times[times <= days]).astype(int))
        found.append(span(tuple(seen.tolist()), last=days))
    return found


def test_pages_that_change_as_a_poisson_process_pass_the_check() -> None:
    observed = Observation(poisson_pages(10.0, pages=60, days=1000, seed=1), 1000, 0.0)
    check = evolution(observed).all.poisson[0]
    assert check.mean_found == pytest.approx(10.0, rel=0.05)
    assert check.distance is not None
    assert check.critical is not None
    assert check.distance < check.critical
    assert check.over_dispersion == pytest.approx(1.0, abs=0.1)
    assert sum(check.histogram) == pytest.approx(1.0, abs=0.05)


def test_regular_changes_are_under_dispersed_and_bursts_over_dispersed() -> None:
    """The goodness of fit tells both apart from a Poisson process."""
    regular = evolution(Observation([span(tuple(range(10, 1000, 10)), last=1000)], 1000, 0.0)).all.poisson[0]
    bursts = tuple(start + day for start in range(0, 1000, 50) for day in range(1, 6))
    bursty = evolution(Observation([span(bursts, last=1000)], 1000, 0.0)).all.poisson[0]
    assert regular.over_dispersion == 0.0
    assert bursty.over_dispersion is not None
    assert bursty.over_dispersion > 2
    for check in (regular, bursty):
        assert check.distance is not None
        assert check.critical is not None
        assert check.distance > check.critical


def test_no_page_with_enough_changes_leaves_the_check_empty() -> None:
    check = evolution(Observation([span((10, 20))], 100, 0.0)).all.poisson[0]
    assert check.distance is None
    assert check.over_dispersion is None


@st.composite
def spans(draw: st.DrawFn) -> PageSpan:
    first = draw(st.integers(0, 50))
    last = draw(st.integers(first, 60))
    days = draw(st.sets(st.integers(first, last), max_size=20))
    return span(tuple(sorted(days)), first=first, last=last, at_start=first == 0, at_end=last == 60)


@given(st.lists(spans(), min_size=1, max_size=30))
def test_shares_sum_to_one_and_the_unchanged_share_never_rises(pages: list[PageSpan]) -> None:
    found = evolution(Observation(pages, 60, 0.0)).all
    for shares in (found.change_interval, found.lifespan_seen, found.lifespan_doubled):
        assert sum(shares.values()) == pytest.approx(1.0)
    assert all(later <= earlier for earlier, later in zip(found.unchanged, found.unchanged[1:], strict=False))
