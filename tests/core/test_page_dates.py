"""Dates of sitemaps and feeds count as much as they proved to be worth."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.page_dates import PRECISION, PageDates

SITE = 40
ALL = np.arange(SITE)


def dated(*pages: int) -> PageDates:
    """A site whose sitemap lists all pages, of which these have a later date."""
    dates = PageDates()
    dates.receive(ALL, np.isin(ALL, pages))
    return dates


def weighed(
    dates: PageDates, *, worth: float = 2.0, of_change: float = 10.0, chance: float = 0.0, listed: int = SITE
) -> list[float]:
    """Of all pages, and one that no sitemap lists."""
    found = np.full(listed + 1, worth)
    dates.weigh(found, np.full(listed + 1, of_change), np.full(listed + 1, chance))
    return found.tolist()


def follow(dates: PageDates, *, changed: bool, times: int, chance: float = 0.0) -> None:
    """Fetch page 0 after each date."""
    for _ in range(times):
        dates.receive(ALL, ALL == 0)
        weighed(dates, chance=chance)
        dates.visit(0, changed=changed)
    dates.receive(ALL, ALL == 0)


def test_a_date_brings_a_page_nearer_to_what_a_change_is_worth_and_others_stay_as_they_are() -> None:
    dates = dated(0)
    assert 0.4 < dates.precision < PRECISION
    assert weighed(dates) == pytest.approx([2.0 + dates.weight * 8.0] + [2.0] * SITE)
    follow(dates, changed=True, times=50)
    assert weighed(dates)[0] > 9.0


def test_a_date_takes_no_worth_from_a_page_that_is_urgent_anyway() -> None:
    assert weighed(dated(0), worth=11.0) == [11.0] * (SITE + 1)


def test_dates_that_mean_nothing_have_no_weight_after_some_fetches() -> None:
    """Not even a little: where nothing ever changes, a change would be worth years."""
    dates = dated(0)
    follow(dates, changed=False, times=10)
    assert dates.weight == 0.0
    assert weighed(dates) == [2.0] * (SITE + 1)
    follow(dates, changed=True, times=30)
    assert dates.weight > 0.5


def test_dates_that_show_no_more_than_the_past_of_the_pages_mean_nothing() -> None:
    """Two of three dated pages have changed, as two of three others have."""
    dates = dated(0)
    for _ in range(30):
        follow(dates, changed=True, times=2, chance=2 / 3)
        follow(dates, changed=False, times=1, chance=2 / 3)
    assert dates.weight < 0.05
    follow(dates, changed=True, times=100, chance=2 / 3)
    assert dates.weight > 0.3


@pytest.mark.parametrize(("many", "counts"), [(SITE, False), (SITE // 2 + 2, False), (2, True)])
def test_dates_do_not_count_if_half_of_the_unchanged_pages_have_one(many: int, counts: bool) -> None:
    dates = dated(*range(many))
    follow(dates, changed=True, times=100)
    dates.receive(ALL, many > ALL)
    assert (dates.weight > 0.7) == counts
    assert (dates.weight > 0.0) == counts


def test_the_dates_of_all_pages_count_if_all_are_believed_to_have_changed_or_are_few() -> None:
    dates = dated(0)
    follow(dates, changed=True, times=20)
    weighed(dates, chance=0.99)
    dates.receive(ALL, ALL >= 0)
    assert dates.weight > 0.5
    few = PageDates()
    few.receive(ALL[:2], ALL[:2] >= 0)
    assert few.weight > 0.0


def test_where_dates_show_every_change_pages_without_a_later_one_are_hardly_fetched() -> None:
    dates = dated(0)
    weighed(dates, chance=0.5)
    for _ in range(90):
        dates.visit(1, changed=False)
    assert dates.recall == pytest.approx(0.9)
    assert weighed(dates)[1:] == pytest.approx([0.2] * (SITE - 1) + [2.0])
    weighed(dates, chance=0.5)
    for _ in range(45):
        dates.visit(1, changed=True)  # which no date showed
    assert dates.recall < 0.5


def test_changes_of_dated_pages_do_not_show_that_dates_miss_none() -> None:
    """Dated pages are fetched more often, so what they show says nothing about the others."""
    dates = dated(0)
    follow(dates, changed=True, times=45, chance=0.5)
    assert dates.recall == 0.0


def test_what_dates_proved_fades_and_is_stored_with_the_pages() -> None:
    dates = PageDates()
    follow(dates, changed=True, times=1000)
    again = PageDates(*dates.saved())
    assert weighed(again) == weighed(dates)
    follow(again, changed=False, times=300)
    assert again.precision < 0.5
    follow(dates, changed=True, times=1)
    some = dates.some(np.isin(np.arange(SITE + 1), (0, 1, SITE)))
    assert weighed(some, listed=2)[2] == 2.0
    assert weighed(some, listed=2)[0] > weighed(some, listed=2)[1]


def test_counts_that_an_earlier_version_kept_are_read() -> None:
    assert PageDates(b"\2", (3.0, 2.0, 1.0, 0.0)).weight > 0.0
