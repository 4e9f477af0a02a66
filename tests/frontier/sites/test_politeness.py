"""When a site may be asked again: delays, back-off, Retry-After, and the pace of a project of its own."""

from __future__ import annotations

import math
import random
from email.utils import formatdate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.sites.street import SEVEN, Street
from webfountain.frontier.batch import Batch
from webfountain.frontier.cluster.loans import LOAN_PAUSE_S, Loans
from webfountain.frontier.planning.schedule import page_backoff
from webfountain.frontier.sites.addresses import AddressGroup
from webfountain.frontier.sites.politeness import (
    LONGEST_BACKOFF_S,
    Gate,
    SitePace,
    SitePoliteness,
    backoff,
    delay_after,
    refuses,
    retry_after,
)
from webfountain.frontier.sites.sequencers import RoundRobin
from webfountain.frontier.visit import Visit as PageVisit
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
        self.address = Gate()

    def opens_after(self, fetch: Fetch = PAGE, **answer: Any) -> float:
        """When the site may be asked again after a fetch that landed at 100."""
        self.standing.gate.take()
        self.address.take()
        self.standing.landed(FetchResult(fetch, 100.0, 0.25, **answer), self.address)
        return self.standing.gate.opens_at - 100.0


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
    assert gate.opens_at == float("inf")
    gate.give(3.0)
    assert gate.opens_at == float("inf")
    gate.reopen(5.0)
    assert gate.opens_at == 5.0


def test_a_request_that_is_counted_apart_leaves_its_slot_to_others_until_it_lands() -> None:
    gate = Gate(1)
    gate.take()
    gate.widen()
    assert gate.opens_at <= 0.0
    gate.take()
    gate.give(1.0)
    gate.narrow()
    assert gate.opens_at == float("inf"), "the other is still under way"
    gate.give(2.0)
    assert gate.opens_at == 2.0


INF = math.inf


@given(st.floats(0, 100), st.floats(0, 10), st.floats(0, 20), st.floats(0, 1000), st.floats(10, 300))
def test_the_delay_is_the_longest_of_three_and_only_min_delay_outgrows_max_delay(
    seconds: float, min_delay: float, factor: float, crawl_delay: float, max_delay: float
) -> None:
    delay = delay_after(seconds, min_delay=min_delay, factor=factor, crawl_delay=crawl_delay, max_delay=max_delay)
    assert min_delay <= delay <= max(min_delay, max_delay)
    assert delay == max(min_delay, factor * seconds, crawl_delay) or delay == max_delay


@given(st.integers(1, 2000), st.floats(0.1, 100), st.integers())
def test_a_back_off_doubles_up_to_a_day_and_is_jittered_by_a_quarter(failures: int, base: float, seed: int) -> None:
    waited = backoff(failures, base=base, rng=random.Random(seed))
    ideal = min(base * 2.0 ** min(failures - 1, 40), LONGEST_BACKOFF_S)
    assert 0.75 * ideal <= waited <= 1.25 * ideal


def test_two_sites_that_failed_together_do_not_come_back_together() -> None:
    rng = random.Random(1)
    assert backoff(3, base=10, rng=rng) != backoff(3, base=10, rng=rng)


@given(st.integers(1, 5000))
def test_dead_pages_are_asked_after_1_2_4_up_to_180_periods(failures: int) -> None:
    waits = [page_backoff(k, period=86_400.0) for k in (failures, failures + 1)]
    assert waits[0] <= waits[1] <= 180 * 86_400.0
    assert page_backoff(1, period=2.0) == 2.0
    assert page_backoff(2, period=2.0) == 4.0


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    assert retry_after("120", at=0) == 120.0
    assert retry_after(formatdate(1_000_090, usegmt=True), at=1_000_000) == 90.0
    assert retry_after(formatdate(999_000, usegmt=True), at=1_000_000) == 0.0


@given(st.one_of(st.none(), st.text(max_size=60)), st.floats(0, 2e9))
def test_no_retry_after_value_breaks_us_or_stops_us_for_more_than_a_day(value: str | None, at: float) -> None:
    assert 0.0 <= retry_after(value, at=at) <= LONGEST_BACKOFF_S


def test_a_refusal_is_429_503_or_no_answer_at_all() -> None:
    assert refuses(429, None)
    assert refuses(503, None)
    assert refuses(None, "connect")
    assert not refuses(500, None)
    assert not refuses(None, "too-large")


def test_slots_are_lent_that_stood_open_for_longer_than_their_delay_or_all_but_one_of_a_full_ant() -> None:
    rules = PolitenessTable(min_delay=Duration(1), concurrency=6)
    standing = SitePoliteness(SiteState(), rules, rng=random.Random(1), metrics=Metrics(), pace=SitePace())
    group = AddressGroup("1.2.3.4", "1.2.3.4", RoundRobin(), 6, is_ours=True)
    loans = Loans(SiteState())
    for gate in (standing.gate, group.gate):
        for _ in range(4):
            gate.take()
        gate.give(97.0)
        gate.give(99.5)
    open_long = [loans.spare(standing, group, at, unused_s=0.05) for at in (97.5, 98.5, 100.0, 101.0)]
    assert open_long == [2, 3, 3, 4], "two that were never used, then the one of 97.0, then that of 99.5"
    assert loans.spare(standing, group, 97.5, unused_s=-INF) == 4
    assert loans.spare(standing, group, 100.0, unused_s=3.5) == 2, "for longer where more is asked"
    for gate in (standing.gate, group.gate):
        gate.give(0.0)
        gate.give(0.0)
    assert loans.spare(standing, group, 101.0, unused_s=0.05) == 5, "one stays where the site uses none itself"


def test_a_site_that_refused_lends_nothing_until_it_has_rested_and_a_while_more() -> None:
    rested = SiteState(next_at=100.0, failures=1)
    loans = Loans(rested)
    rules = PolitenessTable(concurrency=6)
    standing = SitePoliteness(SiteState(), rules, rng=random.Random(1), metrics=Metrics(), pace=SitePace())
    group = AddressGroup("1.2.3.4", "1.2.3.4", RoundRobin(), 6, is_ours=True)
    at = 100.0 + LOAN_PAUSE_S
    assert [loans.spare(standing, group, each, unused_s=-INF) for each in (at - 1.0, at)] == [0, 5]
    batch = Batch(at)
    loans.recall(at, batch)
    assert batch.freed == {}
    assert [loans.spare(standing, group, at + each, unused_s=-INF) for each in (0.0, LOAN_PAUSE_S)] == [0, 5]


@pytest.mark.parametrize(
    ("delay_s", "next_is_in_flight", "is_stored"), [(60, False, True), (1, False, False), (1, True, False)]
)
def test_a_long_wait_of_a_site_is_stored_when_its_page_is_settled(
    delay_s: float, *, next_is_in_flight: bool, is_stored: bool
) -> None:
    """A short wait may be lost by a kill. While the next request is in flight there is no wait to store."""
    street = Street(min_delay=f"{delay_s}s")
    lease = street.enter(SEVEN[0])
    fetch = street.next(0.0)
    street.land(fetch, 0.1)
    if next_is_in_flight:
        street.next(2.0)
    assert fetch.lease is not None
    ended = PageVisit(
        FetchResult(fetch, 0.1, 0.1, 200), "new", msgspec.structs.replace(fetch.lease.record, state="crawled")
    )
    street.list.flights.finished(ended, street.at(2.5))
    assert (lease.site in street.batch.learned) is is_stored
