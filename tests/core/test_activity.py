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


def test_old_changes_are_forgotten_unless_that_is_switched_off():
    kept = []
    for forgetting in (True, False):
        site = Site(forgetting=forgetting, siblings=False, memory=50.0)
        site.fetch(10, [0], changed=True)
        site.fetch(400, [0], changed=False)
        kept.append(float(site.events[0]))
    assert kept == [pytest.approx(np.exp(-390 / 50)), 1.0]


def test_a_fetch_in_the_first_step_teaches_nothing():
    site = Site()
    site.fetch(0, [0], changed=True)
    assert site.activity.mean_rate(0) == Signals().prior_rate


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
    assert Signals(siblings=False).lasting(100) == Signals(siblings=False, memory=100 * VISITS, visit=100)


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


# ------------------------------------------------------------------------------------------ what is known of before


def told(events, watched, **signals):
    """Two sections of twenty pages, each page of a section with the same past; the site and what each page is told."""
    site = Site(**signals)
    by_page = [np.array([values[page % 2] for page in range(2 * PAGES)]) for values in (events, watched)]
    return site, site.activity.begin_with(site.section, *by_page)


def test_a_past_gives_sections_the_rates_that_it_shows_and_the_site_the_mean():
    site, _ = told((10.0, 0.0), (200.0, 200.0))
    a, b = site.section[:2]
    rates = [site.activity.mean_rate(section) for section in (0, a, b)]
    assert rates[0] == pytest.approx(10 / 400, rel=0.02)
    assert rates[1] > 1.5 * rates[0] > 3 * rates[2] > 0


def test_the_exposure_of_a_recalled_page_is_what_an_average_page_of_its_section_went_through():
    site, exposure = told((10.0, 1.0), (200.0, 100.0))
    for page, watched in ((0, 200.0), (1, 100.0)):
        assert exposure[page] == pytest.approx(watched * site.activity.mean_rate(int(site.section[page])))


def test_a_past_that_says_nothing_changes_nothing():
    site, exposure = told((0.0, 0.0), (0.0, 0.0))
    untold = Site()
    assert exposure.tolist() == [0.0] * (2 * PAGES)
    assert site.activity.mean_rate(0) == untold.activity.mean_rate(0) == Signals().prior_rate
    site.activity.advance(9)
    untold.activity.advance(9)
    assert site.urgency(0) == pytest.approx(untold.urgency(0))


def test_without_sections_a_past_gives_all_the_same_rate():
    site, _ = told((10.0, 0.0), (200.0, 200.0), sections=False)
    assert len({site.activity.mean_rate(section) for section in (0, *site.section[:2].tolist())}) == 1


def test_a_past_is_outweighed_by_what_is_found_since():
    site, exposure = told((10.0, 10.0), (200.0, 200.0))
    site.events[:], site.exposure[:] = 10.0, exposure
    before = site.activity.mean_rate(0)
    for step in range(5, 400, 5):
        site.fetch(step, list(range(2 * PAGES)), changed=False)
    assert site.activity.mean_rate(0) < before / 5


@pytest.mark.parametrize(("steps", "every"), [(2, 12), (4, 5), (8, 2)])
def test_the_same_beliefs_in_shorter_steps_find_the_same_pages_urgent(steps, every):
    """As long as all that was found is within the window."""
    coarse, fine = Site(), Site()
    fine.activity = Activity(fine.sections, signals=Signals().spread(steps))
    for site, length in ((coarse, 1), (fine, steps)):
        site.fetch(every * length, [0, 2, 4, 1], changed=False)
        site.fetch(2 * every * length, [0, 2, 4], changed=True)
        site.activity.advance((2 * every + 2) * length)
    assert (2 * every + 2) * steps <= WINDOW
    for page in (0, 6, 1, 7):
        assert fine.urgency(page) / steps == pytest.approx(coarse.urgency(page), rel=0.03)
    assert Signals().spread(steps).day == steps
