"""Dates of sitemaps and feeds count as much as they proved to be worth."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.page_dates import PRECISION, PageDates

ALL = np.arange(4)


def dated(later: list[bool]) -> PageDates:
    dates = PageDates()
    dates.receive(ALL, np.array(later))
    return dates


def weighed(dates: PageDates, *, worth: float = 2.0, of_change: float = 10.0) -> list[float]:
    found = np.full(5, worth)
    dates.weigh(found, np.full(5, of_change))
    return found.tolist()


def test_a_dated_page_is_worth_what_a_change_is_by_the_precision_and_others_stay_as_they_are() -> None:
    assert weighed(dated([True, False, False, False])) == [PRECISION * 10.0, 2.0, 2.0, 2.0, 2.0]


def test_a_date_takes_no_worth_from_a_page_that_is_urgent_anyway() -> None:
    assert weighed(dated([True] * 4), worth=9.0) == [9.0] * 5


def test_dates_that_mean_nothing_lose_their_weight_within_some_fetches() -> None:
    dates = dated([True] * 4)
    for _ in range(20):
        dates.visit(0, changed=False)
        dates.receive(ALL, np.array([True] * 4))
    assert dates.precision < 0.2
    for _ in range(20):
        dates.visit(0, changed=True)
        dates.receive(ALL, np.array([True] * 4))
    assert dates.precision > 0.45


def test_where_dates_show_every_change_pages_without_a_later_one_are_hardly_fetched() -> None:
    dates = PageDates()
    for _ in range(45):
        dates.receive(ALL, np.array([True, False, False, False]))
        dates.visit(0, changed=True)
    assert dates.recall == pytest.approx(0.9)
    assert weighed(dates)[1:] == pytest.approx([0.2, 0.2, 0.2, 2.0])
    for _ in range(45):
        dates.visit(1, changed=True)  # which no date showed
    assert dates.recall < 0.5


def test_what_was_learned_fades_and_is_kept_with_the_pages() -> None:
    dates = PageDates()
    for _ in range(1000):
        dates.receive(ALL, np.array([True] * 4))
        dates.visit(2, changed=True)
    again = PageDates(*dates.saved())
    assert weighed(again) == weighed(dates)
    for _ in range(300):
        again.visit(2, changed=False)
        again.receive(ALL, np.array([True] * 4))
    assert again.precision < 0.5
    assert weighed(again.some(np.array([False, True, True, False, False])))[3:] == [2.0, 2.0]
