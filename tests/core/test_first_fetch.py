"""What the first fetch of a URL is worth follows from the first fetches of its site and of its class."""

from __future__ import annotations

import pytest

from webfountain.core.first_fetch import MOST, FirstFetches, part_of_share


def counted(lived: int, dead: int) -> FirstFetches:
    counts = FirstFetches()
    for number in range(lived + dead):
        counts.count(None, lived=number < lived)
    return counts


def test_a_url_has_a_page_until_dead_ones_are_found() -> None:
    assert FirstFetches().chance(None) == 1.0
    assert counted(9, 0).chance(None) == 1.0
    assert counted(0, 4).chance(None) == pytest.approx(0.5)


def test_a_class_without_fetches_has_the_chance_of_its_site() -> None:
    counts = FirstFetches([("", (100.0, 10.0)), ("good", (20.0, 20.0)), ("bad", (20.0, 0.0))])
    site = counts.chance(None)
    assert counts.chance("new") == site
    assert counts.chance("good") > 0.8
    assert counts.chance("bad") < site / 4


def test_old_fetches_fade() -> None:
    counts = counted(1000, 1000)
    assert counts[""][0] <= MOST
    assert counts.chance(None) < 0.1


def test_what_is_stored_of_a_site_is_continued() -> None:
    counts = FirstFetches([("", (3.0, 2.0)), ("link /a/", (1.0, 0.0))])
    counts.count("link /a/", lived=True)
    assert counts == {"": (4.0, 3.0), "link /a/": (2.0, 1.0)}


def test_a_probably_dead_url_gets_a_part_of_its_share_as_its_saving_is_below_the_price() -> None:
    assert part_of_share(0.1, change_s=50.0, price_s=10.0) == pytest.approx(0.5)
    assert part_of_share(0.1, change_s=500.0, price_s=10.0) == 1.0, "a page that lasts is worth the risk"


def test_a_url_that_surely_has_a_page_gets_its_whole_share_however_often_it_changes() -> None:
    assert part_of_share(1.0, change_s=1.0, price_s=10.0) == 1.0
    assert part_of_share(0.3, change_s=1.0, price_s=10.0) == pytest.approx(0.3)
