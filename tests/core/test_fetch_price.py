"""The price of a fetch follows the budget."""

from __future__ import annotations

import itertools
import math

import pytest

from webfountain.core.fetch_price import MOST_AHEAD, Price


def test_the_price_rises_with_what_waits_and_falls_faster_each_time_that_fetches_are_left() -> None:
    price = Price(100.0)
    price.adjust(planned=10.0, waiting=2 * MOST_AHEAD * 10, owed=0.0, short=False)
    assert 100.0 < price.value <= 200.0
    values = [price.value]
    for _ in range(4):
        price.adjust(planned=10.0, waiting=0.0, owed=0.0, short=True)
        values.append(price.value)
    falls = [later / earlier for earlier, later in itertools.pairwise(values)]
    assert falls == sorted(falls, reverse=True)
    price.adjust(planned=10.0, waiting=0.0, owed=0.0, short=False)
    price.adjust(planned=10.0, waiting=0.0, owed=0.0, short=True)
    assert price.value / values[-1] == pytest.approx(0.97 * 0.8), "slowly again after a check that was met"


def test_the_price_stays_while_little_waits_and_never_falls_to_zero() -> None:
    price = Price(100.0)
    price.adjust(planned=10.0, waiting=12.0, owed=0.0, short=False)
    assert price.value == 100.0
    for _ in range(200):
        price.adjust(planned=10.0, waiting=0.0, owed=0.0, short=True)
    assert 0.0 < price.value < 1e-3


def test_it_comes_to_what_the_missing_pages_are_worth_and_never_to_more_than_any_is() -> None:
    price = Price(100.0)
    price.adjust(planned=10.0, waiting=5.0, owed=0.0, short=False, level=93.0)
    assert price.value == 93.0, "before fetches are left unmade"
    for _ in range(3):
        price.adjust(planned=10.0, waiting=0.0, owed=2.0, short=True, level=60.0)
    assert price.value == 60.0
    price.adjust(planned=10.0, waiting=0.0, owed=2.0, short=True, level=70.0)
    assert price.value == 60.0, "they will come at this price"
    price.adjust(planned=10.0, waiting=900.0, owed=0.0, short=False, top=66.0)
    assert price.value == 66.0
    price.adjust(planned=10.0, waiting=900.0, owed=0.0, short=False, top=50.0)
    assert price.value == 66.0
    price.adjust(planned=10.0, waiting=0.0, owed=-40.0, short=False)
    assert price.value == 66.0, "more than enough were fetched"


def test_where_enough_waits_that_cannot_be_fetched_it_falls_to_what_others_are_worth_and_no_lower() -> None:
    """It rose while fetches were left unmade when a crowd waited."""
    price = Price(100.0)
    for _ in range(5):
        price.adjust(planned=10.0, waiting=29.0, owed=0.0, short=True, level=200.0)
    assert price.value == 100.0
    for waiting in (29.0, 900.0):
        price.adjust(planned=10.0, waiting=waiting, owed=0.0, short=True, level=90.0)
        assert price.value == 90.0
    price.adjust(planned=10.0, waiting=900.0, owed=0.0, short=True, level=0.0)
    assert price.value > 90.0, "none is left of which it is known"


def test_while_more_is_fetched_than_a_goal_takes_the_price_rises_but_never_far_above_every_page() -> None:
    """Fetches that do not depend on the price, for `max_interval` or new pages, raised it without end."""
    for top, highest in ((400.0, 800.0), (math.inf, 1e9)):
        price = Price(100.0)
        price.adjust(planned=10.0, waiting=0.0, owed=-20.0, short=False, top=top, is_only_limit=True)
        assert 100.0 < price.value <= 130.0
        for _ in range(5000):
            price.adjust(planned=10.0, waiting=0.0, owed=-500.0, short=False, top=top, is_only_limit=True)
        assert price.value == highest


def test_after_a_rise_the_price_falls_slowly_again() -> None:
    price = Price(100.0)
    for _ in range(6):
        price.adjust(planned=10.0, waiting=0.0, owed=0.0, short=True, is_only_limit=True)
    price.adjust(planned=10.0, waiting=0.0, owed=-5.0, short=False, is_only_limit=True)
    before = price.value
    price.adjust(planned=10.0, waiting=0.0, owed=0.0, short=True, is_only_limit=True)
    assert price.value == pytest.approx(0.8 * before)


@pytest.mark.parametrize("planned", [0.5, 20.0, 3000.0])
@pytest.mark.parametrize("first", [1e-3, 1.0, 1e5])
def test_whatever_it_begins_at_the_price_comes_to_spend_the_budget(planned: float, first: float) -> None:
    """A thousand pages a check are worth a tenth of a second, a tenth as many ten times that, and so on."""
    price, spent, backlog = Price(first), [], 0.0
    for _ in range(150):
        came = 100.0 * planned * 0.1 / max(price.value, 0.1)  # pages whose urgency reached the price
        made = min(planned * 1.02, backlog + came)
        backlog = min(backlog + came - made, 10 * planned)
        price.adjust(planned=planned, waiting=backlog, owed=0.0, short=made < 0.97 * planned - 1.0 and backlog == 0.0)
        spent.append(made)
    assert sum(spent[50:]) >= 0.97 * 100 * planned - 100.0
    assert 3.0 < price.value < 30.0 or planned < 1.0
