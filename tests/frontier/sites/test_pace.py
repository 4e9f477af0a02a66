"""Which answers of a site make the crawl wait, where the project's own settings rule."""

from __future__ import annotations

import random
from typing import Any

import pytest

from webfountain.frontier.sites.address_group import AddressGroup
from webfountain.frontier.sites.gate import Gate
from webfountain.frontier.sites.pace import SitePace
from webfountain.frontier.sites.ring import RoundRobin, Tier
from webfountain.frontier.sites.standing import SitePoliteness
from webfountain.metrics import Metrics
from webfountain.policy.tables import PolitenessTable
from webfountain.policy.units import Duration
from webfountain.records import Fetch, FetchResult, SiteState

PAGE = Fetch(1, "page", "http://10.0.0.1/", "http://10.0.0.1", "10.0.0.1")
ROBOTS = Fetch(2, "robots", "http://10.0.0.1/robots.txt", "http://10.0.0.1", "10.0.0.1")
RULES = PolitenessTable(min_delay=Duration(5), delay_factor=0)


class Visit:
    """A standing through one fetch, and what was reported."""

    def __init__(self, **pace: Any) -> None:
        self.reported: list[tuple[str, str, float]] = []
        rules = SitePace(report=lambda *what: self.reported.append(what), **pace)
        self.standing = SitePoliteness(SiteState(), RULES, rng=random.Random(1), metrics=Metrics(), pace=rules)
        self.group = AddressGroup("10.0.0.1", "10.0.0.1", Tier(RoundRobin(), 1), is_ours=True)

    def opens_after(self, fetch: Fetch = PAGE, **answer: Any) -> float:
        """When the site may be asked again after a fetch that landed at 100."""
        self.standing.gate.take()
        self.group.gate.take()
        self.standing.landed(FetchResult(fetch, 100.0, 0.25, **answer), self.group)
        return self.standing.opens_at() - 100.0


@pytest.mark.parametrize(("keeps_delay", "delay"), [(True, 5.0), (False, 0.0)])
def test_the_gate_keeps_the_delay_unless_the_downloader_does(keeps_delay: bool, delay: float) -> None:
    assert Visit(keeps_delay=keeps_delay).opens_after(status=200) == delay


@pytest.mark.parametrize("answer", [{"status": 503}, {"status": 429}, {"error": "connect"}, {"error": "timeout"}])
def test_refusals_hold_a_site_back_only_where_back_off_is_on(answer: dict[str, Any]) -> None:
    backing, plain = Visit(back_off=True), Visit(back_off=False, keeps_delay=False)
    assert backing.opens_after(**answer) >= 37.5
    assert [rule for _, rule, _ in backing.reported] == ["back-off"]
    assert plain.opens_after(**answer) == 0.0
    assert plain.reported == []
    assert plain.standing.failures == 0, "no site is given up that is not backed off from"


def test_a_retry_after_holds_without_back_off_and_is_reported_unless_it_is_off() -> None:
    answer: dict[str, Any] = {"status": 503, "headers": (("retry-after", "30"),)}
    obeying, ignoring = (Visit(back_off=False, keeps_delay=False, retry_after=obeys) for obeys in (True, False))
    assert obeying.opens_after(**answer) == 30.0
    assert obeying.reported == [("http://10.0.0.1", "Retry-After", 30.0)]
    assert ignoring.opens_after(**answer) == 0.0
    assert ignoring.reported == []


def test_a_robots_txt_that_is_not_to_be_had_is_counted_in_any_case() -> None:
    visit = Visit(back_off=False, keeps_delay=False)
    assert visit.opens_after(ROBOTS, error="connect") > 0.0
    assert visit.standing.failures == 1


@pytest.mark.parametrize("obeys", [True, False])
def test_a_crawl_delay_holds_unless_it_is_off(obeys: bool) -> None:
    visit = Visit(crawl_delay=obeys, keeps_delay=False)
    visit.standing.obey(7.0, at=0.0)
    assert visit.opens_after(status=200) == (7.0 if obeys else 0.0)


def test_a_closed_gate_opens_when_its_queue_is_empty_and_not_before_the_time_named() -> None:
    gate = Gate(2)
    gate.take()
    gate.close()
    assert gate.open_at() == float("inf")
    gate.give(3.0)
    assert gate.open_at() == float("inf")
    gate.reopen(5.0)
    assert gate.open_at() == 5.0


def test_a_request_that_is_counted_apart_leaves_its_slot_to_others_until_it_lands() -> None:
    gate = Gate(1)
    gate.take()
    gate.widen()
    assert gate.open_at() <= 0.0
    gate.take()
    gate.give(1.0)
    gate.narrow()
    assert gate.open_at() == float("inf"), "the other is still under way"
    gate.give(2.0)
    assert gate.open_at() == 2.0
