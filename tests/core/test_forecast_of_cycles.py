"""What is foretold of cycles, and shown of the present, from what fetches found."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.benchmarks.bench_forecast import foretold
from tests.lab.simulate.test_revisit import trace_of
from webfountain.core.forecast import Belief, BeliefTotal, CycleForecast, SavedForecast, published
from webfountain.core.next_share import BETWEEN, USUAL_SHARE, WITHIN
from webfountain.lab.simulate.trace import MODIFIED

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86_400.0


def lived(shares: list[float], *, cycle: float = 14.0, pages: float = 1000.0) -> CycleForecast:
    """A collection that was so obsolete in each of its cycles; a burst is found, and repaired, at each one's end."""
    forecast = CycleForecast.begun(cycle, at=0.0)
    for number, share in enumerate([*shares, None]):
        for day in range(14):
            at = number * cycle + day
            if number and day == 0 and shares[number - 1] is not None:
                found = [cycle] * round(shares[number - 1] * pages)
                forecast.visit(at, found, fetches=len(found))
            forecast.observe(at, obsolete=0.0, so_far=0.0, missing=0.0, known=pages)
        if share is None:
            break
    return forecast


def test_before_anything_is_found_little_is_promised() -> None:
    forecast = CycleForecast.begun(14.0, at=0.0)
    assert forecast.now() is None
    assert forecast.foretold.cycles == 0
    assert forecast.foretold.low < 0.01 < forecast.foretold.high
    assert forecast.foretold.high > 0.05


def test_before_anything_is_found_the_interval_is_that_of_a_law_of_unknown_middle_and_width() -> None:
    """Student's t with 3 degrees of freedom has a tenth beyond 1.638: collections and their cycles both vary."""
    width = math.hypot(BETWEEN, WITHIN)
    high = USUAL_SHARE * math.exp(1.638 * width)
    assert CycleForecast.begun(14.0, at=0.0).foretold.high == pytest.approx(high, rel=0.2)


def test_one_cycle_says_little_of_the_next() -> None:
    foretold = lived([0.08]).foretold
    assert foretold.cycles == 1
    assert foretold.low < 0.008
    assert foretold.high > 0.16


def test_of_few_cycles_that_differ_the_median_and_the_mean_say_different_things() -> None:
    """Two of three were negligible; the third is in the mean."""
    foretold = lived([0.09, 0.001, 0.002]).foretold
    assert foretold.median < 0.02
    assert foretold.mean is not None
    assert foretold.mean > 1.5 * foretold.median


def test_a_release_under_way_is_in_the_forecast() -> None:
    """In each third cycle the fetches before its begin find changes, and it is ten times as obsolete."""
    forecasts = []
    for under_way in (True, False):
        forecast = CycleForecast.begun(14.0, at=0.0)
        for number in range(31):
            share = 0.2 if number % 3 == 0 else 0.02
            soon = (number + 1) % 3 == 0 if number < 30 else under_way
            for day in range(14):
                at = number * 14.0 + day
                if number == 30 and day == 13:
                    break
                hits = 8 if soon and day >= 12 else 0
                forecast.visit(at, [7.0] * hits, fetches=10)
                if day == 0 and number:
                    before = 0.2 if (number - 1) % 3 == 0 else 0.02
                    forecast.visit(at, [14.0] * round(before * 1000), fetches=0)
                forecast.observe(at, obsolete=share * 100, so_far=0.0, missing=0.0, known=1000.0)
        forecast.visit(433.0, [7.0] * (8 if under_way else 0), fetches=10)
        forecast.observe(434.0, obsolete=20.0, so_far=0.0, missing=0.0, known=1000.0)
        forecasts.append(forecast.foretold)
    assert forecasts[0].median > 2.0 * forecasts[1].median


def test_the_present_may_be_free_of_obsolete_pages_where_less_than_one_is_believed() -> None:
    for believed, may_be_free in ((0.5, True), (20.0, False)):
        forecast = CycleForecast.begun(14.0, at=0.0)
        forecast.observe(0.0, obsolete=believed, so_far=0.0, missing=0.0, known=200.0)
        now = forecast.now()
        assert now is not None
        assert (now.low == 0.0) is may_be_free
        assert now.high > believed / 200.0


def test_what_fetches_found_of_a_cycle_is_its_share() -> None:
    forecast = lived([0.02, 0.1, 0.0])
    assert [cycle.found for cycle in forecast.cycles] == [pytest.approx(each) for each in (0.02, 0.1, 0.0)]
    assert forecast.foretold.cycles == 3


def test_the_forecasts_of_a_steady_collection_become_closer() -> None:
    early, late = lived([0.03] * 2), lived([0.03] * 30)
    for forecast in (early, late):
        assert forecast.foretold.low < 0.03 < forecast.foretold.high
        assert forecast.foretold.median == pytest.approx(0.03, rel=0.6)
    assert late.foretold.high - late.foretold.low < (early.foretold.high - early.foretold.low) / 2


def test_a_burst_counts_once_however_many_pages_it_struck() -> None:
    """One cycle of eight: it is within what may come, and not what is expected."""
    forecast = lived([0.001, 0.001, 0.3, 0.001, 0.001, 0.001, 0.001, 0.001])
    assert forecast.foretold.median < 0.005
    assert forecast.foretold.high < 0.5
    assert lived([0.001, 0.3, 0.3, 0.001, 0.001, 0.3] * 2).foretold.high > 0.3


@pytest.mark.untraced
def test_the_interval_holds_as_often_as_it_says() -> None:
    """Of cycles drawn from one law, log-normal and then of rare releases, eight of ten lie within."""
    rng = random.Random(1)
    laws: list[Callable[[], float]] = [
        lambda: min(0.03 * rng.lognormvariate(0, 0.8), 1.0),
        lambda: 0.2 if rng.random() < 0.08 else 0.01,
    ]
    for law in laws:
        inside = 0
        for _ in range(40):
            shares = [law() for _ in range(24)]
            forecast = lived(shares)
            inside += forecast.foretold.low <= law() <= forecast.foretold.high
        assert inside >= 0.65 * 40


def test_a_belief_that_was_too_pessimistic_corrects_itself_and_the_share_shown() -> None:
    """A tenth was believed obsolete all the time; fetches found a fiftieth."""
    forecast = CycleForecast.begun(14.0, at=0.0)
    for day in range(14 * 12 + 1):
        if day:
            forecast.visit(float(day), [1.0] * 20, fetches=40)
        forecast.observe(float(day), obsolete=100.0, so_far=700.0, missing=0.0, known=1000.0)
    assert {round(cycle.found, 3) for cycle in forecast.cycles[:-1]} == {0.02}
    assert 0.02 < forecast.cycles[-1].found < 0.026
    now = forecast.now()
    assert now is not None
    assert now.low < 0.02 < now.high
    assert now.median == pytest.approx(0.02, rel=0.3)
    assert now.cycles == 12


def test_what_is_found_late_counts_for_the_cycles_in_which_it_was_so() -> None:
    """Pages changed on day 10 and are found on day 30, of cycles of 14 days; nobody believed it."""
    forecast = CycleForecast.begun(14.0, at=0.0)
    for day in range(43):
        if day == 30:
            forecast.visit(30.0, [20.0] * 7, fetches=10)
        forecast.observe(float(day), obsolete=0.0, so_far=0.0, missing=0.0, known=100.0)
    shares = [7 * days / 1400 for days in (4, 14, 2)]
    assert [cycle.found for cycle in forecast.cycles] == pytest.approx(shares)


def test_the_open_part_counts_by_the_share_that_was_confirmed_in_earlier_cycles() -> None:
    """What is believed at the end of a cycle proves true, or never is."""
    for proves in (True, False):
        forecast = CycleForecast.begun(14.0, at=0.0)
        for day in range(14 * 8 + 1):
            if proves and day and day % 14 == 0:
                forecast.visit(float(day), [7.0] * 40, fetches=40)
            believed = 40.0 if day % 14 >= 7 or (not proves and day) else 0.0
            so_far = 40.0 * (day % 14 - 7) if believed and proves else 280.0 if believed else 0.0
            forecast.observe(float(day), obsolete=believed, so_far=max(so_far, 0.0), missing=0.0, known=1000.0)
        last = forecast.cycles[-1].found
        assert (last == pytest.approx(0.02, rel=0.1)) is proves
        assert (last < 0.004) is not proves


def test_pages_that_were_not_fetched_yet_do_not_count_against_the_belief() -> None:
    """A hundred pages become obsolete as each cycle begins. All are found, four cycles later."""
    forecast = CycleForecast.begun(14.0, at=0.0)
    for day in range(14 * 12 + 1):
        begun = [begin for begin in range(0, day, 14) if day - begin <= 56]
        if day % 14 == 0 and day >= 56:
            forecast.visit(float(day), [56.0] * 100, fetches=100)
            begun = begun[1:]
        so_far = sum(100.0 * (day - begin) for begin in begun)
        forecast.observe(float(day), obsolete=100.0 * len(begun), so_far=so_far, missing=0.0, known=1000.0)
    assert forecast.cycles[-6].found == pytest.approx(0.4, rel=0.05)
    assert forecast.cycles[-1].found == pytest.approx(0.4, rel=0.1)


def test_pages_without_a_copy_are_obsolete() -> None:
    forecast = CycleForecast.begun(14.0, at=0.0)
    for day in range(15):
        forecast.observe(float(day), obsolete=0.0, so_far=0.0, missing=50.0, known=1000.0)
    assert forecast.cycles[0].found == pytest.approx(0.05)


def test_the_first_fetches_of_a_collection_are_no_evidence_for_later_cycles() -> None:
    """Pages get their first copies for ten days, or for a hundred: then that is what the cycles are like."""
    for days, cycles in ((10, 2), (100, 3)):
        forecast = CycleForecast.begun(14.0, at=0.0)
        for day in range(46):
            missing = max(800.0 * (1 - day / days), 0.0)
            forecast.observe(float(day), obsolete=0.0, so_far=0.0, missing=missing, known=1000.0)
        assert len(forecast.cycles) == cycles
        assert forecast.begin >= 10
        assert all((cycle.found < 0.01) is (days == 10) for cycle in forecast.cycles)


def test_the_beliefs_of_sites_add_up_each_as_of_its_own_time() -> None:
    standing = BeliefTotal(1e9)
    one, two = Belief(1e9, 10, 2.0, 5.0, 0.1), Belief(1e9 + 7, 20, 1.0, 3.0, 0.0)
    standing.replace(None, one)
    standing.replace(None, two)
    assert standing.obsolete(1e9 + 10) == pytest.approx(2.0 + 10 * 0.1 + 1.0)
    assert standing.so_far(1e9 + 10) == pytest.approx(5.0 + 2.0 * 10 + 0.05 * 100 + 3.0 + 3.0)
    standing.replace(one, Belief(1e9 + 10, 10, 0.0, 0.0, 0.0))
    assert standing.obsolete(1e9 + 10) == pytest.approx(1.0)
    assert standing.pages == 30


def test_a_stored_forecast_continues_and_one_of_another_version_is_ignored() -> None:
    forecast = lived([0.02, 0.1])
    data = msgspec.msgpack.encode(SavedForecast(forecast, BeliefTotal(0.0)))
    kept = published(data)
    assert kept is not None
    assert kept.forecast == forecast
    assert published(None) is published(b"older") is published(b"\x92\x01\x02") is None


def test_forecasts_hold_on_a_trace() -> None:
    """A generated site with releases; on real ones: tests/benchmarks/bench_forecast.py."""
    rng = random.Random(4)
    releases = [(day, section) for day in range(420) for section in range(3) if rng.random() < 1 / 40]
    events = [(day, page, MODIFIED) for day, section in releases for page in range(section, 60, 3)]
    rows = foretold(trace_of(events, pages=60, alive=60, days=420), 4)
    inside = sum(row.outlook.low <= row.true <= row.outlook.high for row in rows)
    assert 0.6 * len(rows) <= inside
    error = sum(abs(row.found - row.true) for row in rows) / len(rows)
    assert error < 0.5 * sum(row.true for row in rows) / len(rows)
