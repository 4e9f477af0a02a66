"""When a gone page is worth a request, from what the gone pages of its site did."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from webfountain.core.return_time import Returns, price_of_interval, time_to_return
from webfountain.core.urgency import urgency_of_known_rate

DAY = 86_400.0


@pytest.mark.parametrize(("interval", "change"), [(3.0, 100.0), (30.0, 10.0)])
def test_the_price_of_an_interval_is_the_urgency_of_a_page_at_its_end(interval: float, change: float) -> None:
    urgency = urgency_of_known_rate(np.array([1 / change]), np.array([interval]))[0]
    assert price_of_interval(interval, change) == pytest.approx(float(urgency))


def test_a_gone_page_waits_until_its_urgency_is_the_price() -> None:
    rate, price = 1 / (100 * DAY), 2 * DAY
    wait = time_to_return(rate, gone_s=0.0, price_s=price)
    assert price_of_interval(wait, 1 / rate) == pytest.approx(price)


def test_the_longer_a_page_is_gone_and_the_fewer_come_back_the_longer_the_wait() -> None:
    common, rare = 1 / (20 * DAY), 1 / (2000 * DAY)
    waits = [time_to_return(rate, gone_s=gone, price_s=DAY) for rate, gone in ((common, 0), (common, 90 * DAY))]
    assert waits == sorted(waits)
    assert time_to_return(rare, gone_s=0.0, price_s=DAY) > 3 * waits[0]


def test_a_page_that_is_never_worth_the_price_is_never_due() -> None:
    assert time_to_return(1 / DAY, gone_s=0.0, price_s=2 * DAY) == inf


def test_the_rate_follows_the_returns_that_were_found() -> None:
    assert Returns().rate(usual_s=10 * DAY) == pytest.approx(1 / (10 * DAY))
    assert Returns(50, 5000 * DAY).rate(usual_s=10 * DAY) == pytest.approx(1 / (100 * DAY), rel=0.02)
    assert Returns(0, 5000 * DAY).rate(usual_s=10 * DAY) < 1 / (5000 * DAY)


def test_a_class_of_urls_has_the_rate_of_its_site_until_it_showed_another() -> None:
    site = 1 / (100 * DAY)
    assert Returns().rate_within(site) == pytest.approx(site)
    assert Returns(10, 100 * DAY).rate_within(site) == pytest.approx(1 / (10 * DAY), rel=0.4)
    assert Returns(0, 5000 * DAY).rate_within(site) < site / 50


def test_a_site_of_many_dead_urls_requests_a_sample_of_them_to_learn() -> None:
    assert Returns(urls=40).spacing == 1.0
    assert Returns(urls=4000).spacing == pytest.approx(10.0)
    assert Returns(urls=4000, asked=4000).spacing == 1.0
