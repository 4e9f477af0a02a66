"""Dates of sitemaps and feeds count as much as they proved to be worth."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from webfountain.core.page_dates import PageDates

SITE = 40
ALL = np.arange(SITE)
RATE = 0.01


def dated(*pages: int) -> PageDates:
    """A site whose sitemap lists all pages, of which these have a later date."""
    dates = PageDates()
    dates.receive(ALL, np.isin(ALL, pages))
    return dates


def weighed(dates: PageDates, *, chance: float = 0.1, listed: int = SITE) -> list[float]:
    """The urgencies of all pages, and of one that no sitemap lists: all have changed with this chance, at a known
    rate."""
    age = -log(1.0 - chance) / RATE
    found = np.full(listed + 1, (chance - age * RATE * (1.0 - chance)) / RATE)
    dates.weigh(found, np.full(listed + 1, age * (1.0 - chance)), np.full(listed + 1, chance))
    return found.tolist()


def follow(dates: PageDates, *, changed: bool, times: int, chance: float = 0.1) -> None:
    """Fetch page 0 after each date."""
    for _ in range(times):
        dates.receive(ALL, ALL == 0)
        weighed(dates, chance=chance)
        dates.visit(0, changed=changed)
    dates.receive(ALL, ALL == 0)


def ignore(dates: PageDates, *, changed: bool, times: int, chance: float = 0.1) -> None:
    """Fetch a listed page without a later date."""
    for _ in range(times):
        weighed(dates, chance=chance)
        dates.visit(1, changed=changed)


def test_dates_count_little_before_a_fetch_has_shown_what_they_are_worth() -> None:
    assert 1.0 < dated(0).raises < 3.0
    assert dated(0).lowers == 1.0
    plain = weighed(PageDates())[0]
    first, *others = weighed(dated(0))
    assert plain < first < 0.1 / RATE
    assert others == pytest.approx([plain] * SITE)


def test_a_date_brings_a_page_nearer_to_what_a_change_is_worth_and_others_stay_as_they_are() -> None:
    dates = dated(0)
    follow(dates, changed=True, times=2)
    first, *others = weighed(dates)
    assert 2.0 * others[0] < first < 1.0 / RATE
    assert others == pytest.approx([weighed(PageDates())[0]] * SITE)
    follow(dates, changed=True, times=50)
    assert weighed(dates)[0] > 0.7 / RATE


def test_the_urgency_of_a_dated_page_is_that_of_a_page_that_waited_until_its_chance_was_as_high() -> None:
    dates = dated(0)
    follow(dates, changed=True, times=4)
    odds = dates.raises * 0.1 / 0.9
    assert weighed(dates)[0] == pytest.approx(weighed(PageDates(), chance=odds / (1.0 + odds))[0])


def test_dates_that_mean_nothing_count_nothing_after_some_fetches() -> None:
    dates = dated(0)
    follow(dates, changed=True, times=1)
    assert dates.raises > 3.0
    follow(dates, changed=False, times=10)
    assert dates.raises == 1.0
    follow(dates, changed=True, times=30)
    assert dates.raises > 20.0


@pytest.mark.parametrize("chance", [0.02, 2 / 3])
def test_dates_that_show_no_more_than_the_past_of_the_pages_mean_nothing(chance: float) -> None:
    """Two of three dated pages have changed, as two of three others have; or one of fifty."""
    dates = dated(0)
    rng = np.random.default_rng(1)
    for changed in (rng.random(600) < chance).tolist():
        follow(dates, changed=changed, times=1, chance=chance)
    assert dates.raises < 1.7
    follow(dates, changed=True, times=400, chance=chance)
    assert dates.raises > 2.0


def test_a_site_that_dates_all_its_pages_at_every_reading_gains_nothing() -> None:
    dates = PageDates()
    rng = np.random.default_rng(2)
    for changed in (rng.random(400) < 0.1).tolist():
        dates.receive(ALL, ALL >= 0)
        weighed(dates)
        dates.visit(3, changed=changed)
    assert dates.raises < 1.5


def test_changes_of_pages_without_a_later_date_are_not_the_merit_of_the_dates() -> None:
    """The past of the pages foretells too little: a release, for example."""
    dates = dated(0)
    follow(dates, changed=True, times=8)
    alone = dates.raises
    ignore(dates, changed=True, times=8)
    assert dates.raises < alone / 5.0


def test_where_dates_show_every_change_pages_without_a_later_one_are_hardly_fetched() -> None:
    dates = dated(0)
    before = weighed(dates)[1]
    ignore(dates, changed=False, times=200, chance=0.3)
    assert dates.lowers < 0.2
    assert weighed(dates)[1] < 0.25 * before
    assert weighed(dates)[-1] == pytest.approx(before), "no sitemap lists this page"
    ignore(dates, changed=True, times=20, chance=0.3)  # which no date showed
    assert dates.lowers > 0.5


def test_changes_of_dated_pages_do_not_show_that_dates_miss_none() -> None:
    """Dated pages are fetched more often, so what they show says nothing about the others."""
    dates = dated(0)
    follow(dates, changed=True, times=45, chance=0.5)
    assert dates.lowers == 1.0


def test_one_change_of_a_page_that_never_changes_does_not_count_without_bound() -> None:
    dates = dated(0)
    follow(dates, changed=True, times=300, chance=1e-12)
    assert dates.raises < exp(14.0)
    assert all(np.isfinite(weighed(dates, chance=1e-12)))
    assert all(np.isfinite(weighed(dates, chance=1.0 - 1e-15)))


def test_what_dates_proved_fades_and_is_stored_with_the_pages() -> None:
    dates = PageDates()
    follow(dates, changed=True, times=1000)
    again = PageDates(*dates.saved())
    assert weighed(again) == weighed(dates)
    follow(again, changed=False, times=300)
    assert again.raises < 1.5
    follow(dates, changed=True, times=1)
    some = dates.some(np.isin(np.arange(SITE + 1), (0, 1, SITE)))
    assert weighed(some, listed=2)[2] == weighed(PageDates())[0]
    assert weighed(some, listed=2)[0] > weighed(some, listed=2)[1]


def test_counts_that_an_earlier_version_kept_are_forgotten_and_its_dates_are_not() -> None:
    dates = PageDates(b"\2", (3.0, 2.0, 1.0, 0.0, 0.5))
    assert dates.raises == dated(0).raises
    weighed(dates, listed=1)
    dates.visit(0, changed=True)
    assert dates.raises > dated(0).raises
