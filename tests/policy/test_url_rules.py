"""Spider traps: what is refused, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.policy.url_rules import FIRST_YEAR, is_off_calendar, is_repeated, leaves_calendar, year_of

S = "https://a.example"


@pytest.mark.parametrize(
    "path",
    ["/a/a/a/a", "/a/b/a/b/a/b/a/b/", "/x/a/y/a/z/a/w/a", "/a/////b", "/?a=1&a=1&a=1&a=1", "/en/en/en/en/x.html"],
)
def test_a_segment_or_parameter_that_repeats_too_often_is_a_trap(path: str) -> None:
    assert is_repeated(S + path, 3)


@pytest.mark.parametrize(
    "path", ["/", "/a/a/a", "/a/b/a/b/a/b", "/a/b/c/d/e/f/g", "/?a=1&a=2&a=3&a=4&a=5", "/x?p=/a/a/a/a"]
)
def test_fewer_repetitions_are_no_trap(path: str) -> None:
    assert not is_repeated(S + path, 3)


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(1, 5))
def test_repetition_is_the_count_of_the_commonest_segment(segments: list[str], most: int) -> None:
    url = S + "".join(f"/{each}" for each in segments)
    assert is_repeated(url, most) == (max(map(segments.count, segments), default=0) > most)


@pytest.mark.parametrize(
    ("path", "year"),
    [
        ("/2031/05", 2031),
        ("/cal/2031-05-17", 2031),
        ("/2031/may/", 2031),
        ("/week/2031-W07", 2031),
        ("/17.05.2031", 2031),
        ("/may-2031", 2031),
        ("/log-20310517.html", 2031),
        ("/?year=2031&month=5", 2031),
        ("/?month=05-2031", 2031),
        ("/?date=20310517", 2031),
        ("/?y=1985", 1985),
        ("/thread/2031", None),
        ("/item/12031/05x", None),
        ("/20319/5", None),
        ("/2031/section", None),
        ("/?id=2031", None),
        ("/2031/77", None),
        ("/2250/05", None),
        ("/", None),
    ],
)
def test_a_date_is_a_year_with_a_month_or_a_parameter_of_time(path: str, year: int | None) -> None:
    assert year_of(S + path) == year


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("/2028/12", "/2029/1"),
        ("/cal/2028-12-31", "/cal/2029-01-01"),
        ("/?month=12&year=2028", "/?month=1&year=2029"),
        ("/dec-2028/", "/jan-2029/"),
        ("/1990/01/", "/1989/12/"),
        ("/day/20281231?view=list", "/day/20290101?view=list"),
    ],
)
def test_a_step_out_of_a_calendar_is_a_trap(page: str, link: str) -> None:
    assert leaves_calendar(S + link, S + page, last_year=2028)


@pytest.mark.parametrize(
    ("page", "link", "why"),
    [
        ("/2028/11", "/2028/12", "within"),
        ("/archive/", "/1889/12", "an index of another pattern vouches for old editions"),
        ("/1889/11", "/1889/12", "so one can walk on from there"),
        ("/thread/2105/1", "/thread/2105/2", "a number that looks like a year, twice"),
        ("/item/2028", "/item/2029", "no month, no date"),
        ("/page/2028?p=1", "/page/2029?p=2", "numbers, but none of time"),
    ],
)
def test_other_links_are_no_calendar_traps(page: str, link: str, why: str) -> None:
    assert not leaves_calendar(S + link, S + page, last_year=2028), why


def test_an_endless_calendar_walked_by_its_own_links_ends() -> None:
    year, month, steps = 2026, 11, 0
    page = f"{S}/calendar/{year}/{month:02}"
    while steps < 1000:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        link = f"{S}/calendar/{year}/{month:02}"
        if leaves_calendar(link, page, last_year=2028):
            break
        page, steps = link, steps + 1
    assert steps == 25  # to December 2028


@given(st.text(max_size=60), st.text(max_size=60), st.integers(1990, 2100))
def test_a_step_out_of_bounds_is_out_of_bounds(link: str, page: str, last_year: int) -> None:
    if leaves_calendar(S + "/" + link, S + "/" + page, last_year=last_year):
        assert is_off_calendar(S + "/" + link, last_year=last_year)
        year = year_of(S + "/" + link)
        assert year is not None
        assert year < FIRST_YEAR or year > last_year
