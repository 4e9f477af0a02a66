"""What a fetch tells about the pages not fetched."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.activity import WINDOW, Activity
from webfountain.core.sections import Sections
from webfountain.core.signals import VISITS, Signals
from webfountain.core.urgency import urgency

PAGES = 20


class Site:
    """Twenty pages in each of two sections, for telling and asking in one line."""

    def __init__(self, **signals: bool | float) -> None:
        self.sections = Sections()
        self.section = np.array(self.sections.sections_of([f"/{'ab'[page % 2]}/{page}" for page in range(2 * PAGES)]))
        self.activity = Activity(self.sections, signals=Signals(**signals))  # type: ignore[arg-type]
        self.since = np.zeros(2 * PAGES, dtype=np.int64)
        self.events, self.exposure = np.zeros(2 * PAGES), np.zeros(2 * PAGES)

    def fetch(self, step: int, pages: list[int], changed: bool) -> None:
        at = np.array(pages)
        self.activity.advance(step)
        self.events[at], self.exposure[at] = self.activity.observe(
            self.section[at], self.since[at], np.full(len(at), changed), self.events[at], self.exposure[at]
        )
        self.since[at] = step

    def urgency(self, page: int) -> float:
        at = np.array([page])
        found = self.activity.urgency(self.section[at], self.since[at], self.events[at], self.exposure[at])
        return float(found[0])


def test_a_sibling_found_changed_makes_a_page_more_urgent_than_one_of_another_section():
    site = Site()
    site.fetch(10, [0, 2, 4], changed=True)
    assert site.urgency(6) > site.urgency(7)


def test_siblings_found_unchanged_calm_a_page():
    calm, untold = Site(), Site()
    calm.fetch(10, [0, 2, 4, 6, 8, 10], changed=False)
    untold.activity.advance(10)
    assert calm.activity.hazard(np.array([1]), np.array([0])) < untold.activity.hazard(np.array([1]), np.array([0]))


def test_a_burst_is_placed_where_only_the_changed_pages_were_not_watching():
    """Pages watched until step 9 saw nothing; at step 11 all have changed: it was in the steps between."""
    site = Site()
    site.fetch(9, list(range(0, 20, 2)), changed=False)
    site.fetch(11, list(range(0, 20, 2)), changed=True)
    section = site.section[:1]
    late = site.activity.hazard(section, np.array([9]))[0]
    early = site.activity.hazard(section, np.array([0]))[0] - late
    assert late / 2 > 20 * early / 9


def test_without_siblings_a_fetch_says_nothing_of_the_steps():
    site = Site(siblings=False)
    site.fetch(10, [0, 2, 4], changed=True)
    steps = [site.activity.hazard(site.section[:1], np.array([step]))[0] for step in (0, 5, 10)]
    assert steps[0] - steps[1] == pytest.approx(steps[1] - steps[2])


def test_without_history_a_page_keeps_no_events_of_its_own():
    site = Site(history=False)
    site.fetch(10, [0], changed=True)
    assert site.events.tolist() == site.exposure.tolist() == [0.0] * 40


def test_without_sections_all_have_one_rate():
    site = Site(sections=False, siblings=False)
    for step in range(5, 50, 5):
        site.fetch(step, list(range(0, 40, 2)), changed=True)
    for page in (0, 1):
        site.events[page] = site.exposure[page] = site.since[page] = 0
    assert site.urgency(0) == site.urgency(1)


@pytest.mark.parametrize("interval", [5, 20])
def test_the_learned_rate_is_that_of_the_process(interval: int):
    """Independent pages that change every 30 steps: within a fifth after 600 steps, from half-blind checks."""
    rng, site = np.random.default_rng(interval), Site()
    for step in range(interval, 601, interval):
        changed = rng.random(40) < -np.expm1(-interval / 30)
        site.activity.advance(step)
        site.events, site.exposure = site.activity.observe(
            site.section, site.since, changed, site.events, site.exposure
        )
        site.since[:] = step
    expected = site.activity.hazard(site.section, site.since - 60)
    assert float(expected.mean()) == pytest.approx(60 / 30, rel=0.2)


def test_the_week_is_learned_only_where_it_is_listened_to():
    """Everything changes on each seventh step and is fetched on every one."""
    told: dict[bool, list[float]] = {}
    for weekdays in (False, True):
        site = Site(weekdays=weekdays, siblings=True)
        for step in range(1, 100):
            site.fetch(step, list(range(2 * PAGES)), changed=step % 7 == 0)
        site.activity.advance(106)
        steps = [site.activity.hazard(site.section[:1], np.array([step]))[0] for step in range(99, 106)]
        told[weekdays] = (-np.diff(steps)).tolist()
    assert max(told[False]) == pytest.approx(min(told[False]))
    # A change found in step 105 happened in step 104, the one before.
    assert max(told[True]) == told[True][104 - 99]
    assert told[True][104 - 99] > 3 * min(told[True])


def test_the_time_of_freshness_is_the_urgency_of_a_page_that_surely_changed():
    site = Site(siblings=False)
    site.fetch(20, [0, 2, 4], changed=True)
    at = np.array([0])
    site.events[:], site.exposure[:] = 200.0, 400.0  # a rate known well
    fresh = site.activity.fresh_time(site.section[at], site.events[at], site.exposure[at])
    rate = np.full(1, site.activity.mean_rate(int(site.section[0])))
    struck = urgency(rate * 1e5, rate, site.events[at] + 0.5, site.exposure[at] + 0.5)
    assert fresh == pytest.approx(struck, rel=0.01)


def test_evidence_lasts_twelve_visits_and_at_least_its_memory():
    assert Signals().lasting(1).memory == Signals().memory
    assert Signals(siblings=False).lasting(100) == Signals(siblings=False, memory=100 * VISITS)


def test_many_idle_steps_and_new_sections_are_taken_in():
    site = Site()
    site.fetch(5, [0, 1], changed=True)
    new = site.sections.sections_of([f"/a/new/{page}" for page in range(3)])[0]
    site.activity.advance(2500 + WINDOW)
    hazard = site.activity.hazard(np.array([new, 1]), np.array([5, 5]))
    assert hazard[0] == pytest.approx(hazard[1], rel=0.2)
    assert np.isfinite(hazard).all()
    assert (hazard > 0).all()


def test_a_page_fetched_twice_in_a_step_teaches_nothing():
    site = Site()
    site.fetch(3, [0], changed=False)
    before = (site.events.copy(), site.exposure.copy(), site.urgency(2))
    site.fetch(3, [0], changed=False)
    assert (site.events.tolist(), site.exposure.tolist()) == (before[0].tolist(), before[1].tolist())
    assert site.urgency(2) == pytest.approx(before[2], rel=0.05)
