"""What a fetch tells about the pages not fetched."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.activity import WINDOW, UncheckedPages
from webfountain.core.signals import VISITS, Signals
from webfountain.core.site_urgency import Sites, SiteUrgency
from webfountain.core.urgency import urgency

PAGES = 20
ALL = np.ones(2 * PAGES, dtype=np.bool_)


class Site:
    """Twenty pages in each of two sections, to tell and ask in one line; page 0 in one, 1 in the other."""

    def __init__(self, **signals: bool | float) -> None:
        self.known = SiteUrgency(signals=Signals(**signals))  # type: ignore[arg-type]
        self.add([f"/{'ab'[page % 2]}/{page}" for page in range(2 * PAGES)], step=0)

    def add(self, paths: list[str], *, step: int) -> None:
        self.known.add(paths, since=np.full(len(paths), step), importance=np.ones(len(paths)))

    def fetch(self, step: int, pages: list[int], changed: bool) -> None:
        self.known.observe(np.array(pages), np.full(len(pages), changed), step=step)

    def urgency(self, page: int, *, step: int | None = None) -> float:
        step = self.known.memory.step if step is None else step
        return float(self.known.urgency(np.array([page]), step=step)[0])

    def hazard(self, page: int, *, since: int, step: int | None = None) -> float:
        """What the page's section went through in the steps of the window from `since` on."""
        site = Sites([self.known], step=self.known.memory.step if step is None else step)
        observed = UncheckedPages(site.unchecked.section[[page]], np.array([since]), np.zeros(1))
        return float(site.activity.hazard(observed)[0])

    def rate(self, page: int | None = None) -> float:
        """Of the page's section, or of the site."""
        site = Sites([self.known], step=self.known.memory.step)
        return float(site.activity.mean_rate(np.array([0 if page is None else site.unchecked.section[page]]))[0])

    @property
    def evidence(self) -> list[list[float]]:
        """Events and exposure of each page."""
        return [row.tolist() for row in Sites([self.known], step=self.known.memory.step).page[:2]]


def test_a_sibling_found_changed_makes_a_page_more_urgent_than_one_of_another_section() -> None:
    site = Site()
    site.fetch(10, [0, 2, 4], changed=True)
    assert site.urgency(6) > site.urgency(7)


def test_siblings_found_unchanged_make_a_page_less_urgent() -> None:
    calm, unreported = Site(), Site()
    calm.fetch(10, [0, 2, 4, 6, 8, 10], changed=False)
    assert calm.hazard(0, since=0) < unreported.hazard(0, since=0, step=10)


def test_a_burst_is_placed_where_only_the_changed_pages_were_not_observed() -> None:
    """Pages watched until step 9 saw nothing; at step 11 all have changed: it was in the steps between."""
    site = Site()
    site.fetch(9, list(range(0, 20, 2)), changed=False)
    site.fetch(11, list(range(0, 20, 2)), changed=True)
    late = site.hazard(0, since=9)
    early = site.hazard(0, since=0) - late
    assert late / 2 > 20 * early / 9


def test_without_siblings_a_fetch_says_nothing_of_the_steps() -> None:
    site = Site(siblings=False)
    site.fetch(10, [0, 2, 4], changed=True)
    steps = [site.hazard(0, since=step) for step in (0, 5, 10)]
    assert steps[0] - steps[1] == pytest.approx(steps[1] - steps[2])


def test_without_history_a_page_keeps_no_events_of_its_own() -> None:
    site = Site(history=False)
    site.fetch(10, [0], changed=True)
    assert site.evidence == [[0.0] * 40] * 2


def test_old_changes_are_forgotten_unless_that_is_switched_off() -> None:
    kept = []
    for forgetting in (True, False):
        site = Site(forgetting=forgetting, siblings=False, memory=50.0)
        site.fetch(10, [0], changed=True)
        site.fetch(400, [0], changed=False)
        kept.append(site.evidence[0][0])
    assert kept == [pytest.approx(np.exp(-390 / 50)), 1.0]


def test_a_fetch_in_the_first_step_teaches_nothing() -> None:
    site = Site()
    site.fetch(0, [0], changed=True)
    assert site.rate() == pytest.approx(Signals().prior_rate)


def test_without_sections_all_have_one_rate() -> None:
    site = Site(sections=False, siblings=False)
    for step in range(5, 50, 5):
        site.fetch(step, list(range(0, 40, 2)), changed=True)
    assert site.rate(0) == site.rate(1)


@pytest.mark.parametrize("interval", [5, 20])
def test_the_learned_rate_is_that_of_the_process(interval: int) -> None:
    """Independent pages that change every 30 steps: within a fifth after 600 steps, from half-blind checks."""
    rng, site = np.random.default_rng(interval), Site()
    for step in range(interval, 601, interval):
        site.known.observe(np.arange(2 * PAGES), rng.random(40) < -np.expm1(-interval / 30), step=step)
    expected = [site.hazard(page, since=600 - WINDOW) for page in range(2)]
    assert float(np.mean(expected)) == pytest.approx(WINDOW / 30, rel=0.2)


def test_the_chance_of_a_change_and_the_time_unchanged_give_what_a_change_is_worth() -> None:
    """The urgency of a page that surely changed is the time for which it stays unchanged."""
    site = Site(siblings=False)
    for step in range(30, 3000, 30):
        site.fetch(step, list(range(2 * PAGES)), changed=step % 60 == 0)
    rate, (events, exposure) = np.array([site.rate(0)]), (np.array([row[0]]) for row in site.evidence)
    struck = urgency(rate * 1e5, rate, events + 0.5, exposure + 0.5)
    now = Sites([site.known], step=site.known.memory.step + 30)
    still, chance = now.unchanged()
    assert ((now.urgency(np.arange(1)) + still[:1]) / chance[:1]) == pytest.approx(struck, rel=0.3)


def test_evidence_lasts_twelve_visits_and_at_least_its_memory() -> None:
    assert Signals().lasting(1).memory == Signals().memory
    assert Signals(siblings=False).lasting(100) == Signals(siblings=False, memory=100 * VISITS, visit=100)


def test_many_idle_steps_and_new_sections_are_taken_in() -> None:
    site = Site()
    site.fetch(5, [0, 1], changed=True)
    site.add([f"/a/new/{page}" for page in range(3)], step=5)
    late = Sites([site.known], step=2500 + WINDOW)
    hazard = late.activity.hazard(late.unchecked.of(np.array([2 * PAGES, 1])))
    assert hazard[0] == pytest.approx(hazard[1], rel=0.2)
    assert np.isfinite(hazard).all()
    assert (hazard > 10).all(), "as long as it was"


def test_a_page_fetched_twice_in_a_step_teaches_nothing() -> None:
    site = Site()
    site.fetch(3, [0], changed=False)
    before = (site.evidence, site.urgency(2))
    site.fetch(3, [0], changed=False)
    assert site.evidence == before[0]
    assert site.urgency(2) == pytest.approx(before[1], rel=0.05)


# ------------------------------------------------------------------------------------------ what is known of before


def reported(events: tuple[float, float], observed_time: tuple[float, float], **signals: bool | float) -> Site:
    """Two sections of twenty pages, each page of a section with the same past."""
    site = Site()
    by_page = [np.array([values[page % 2] for page in range(2 * PAGES)]) for values in (events, observed_time)]
    site.known = SiteUrgency.resumed(
        [f"/{'ab'[page % 2]}/{page}" for page in range(2 * PAGES)], since=np.zeros(2 * PAGES, dtype=np.int64),
        events=by_page[0], observed_time=by_page[1], importance=np.ones(2 * PAGES),
        signals=Signals(**signals), step=0,  # type: ignore[arg-type]
    )  # fmt: skip
    return site


def test_a_past_gives_sections_the_rates_that_it_shows_and_the_site_the_mean() -> None:
    site = reported((10.0, 0.0), (200.0, 200.0))
    rates = [site.rate(), site.rate(0), site.rate(1)]
    assert rates[0] == pytest.approx(10 / 400, rel=0.02)
    assert rates[1] > 1.5 * rates[0] > 3 * rates[2] > 0


def test_the_exposure_of_a_recalled_page_is_what_an_average_page_of_its_section_went_through() -> None:
    site = reported((10.0, 1.0), (200.0, 100.0))
    for page, observed_time in ((0, 200.0), (1, 100.0)):
        assert site.evidence[1][page] == pytest.approx(observed_time * site.rate(page))


def test_a_past_that_says_nothing_changes_nothing() -> None:
    site, unreported = reported((0.0, 0.0), (0.0, 0.0)), Site()
    assert site.evidence == [[0.0] * (2 * PAGES)] * 2
    assert site.rate() == unreported.rate() == pytest.approx(Signals().prior_rate)
    assert site.urgency(0, step=9) == pytest.approx(unreported.urgency(0, step=9))


def test_without_sections_a_past_gives_all_the_same_rate() -> None:
    site = reported((10.0, 0.0), (200.0, 200.0), sections=False)
    assert site.rate() == site.rate(0) == site.rate(1)


def test_a_past_is_outweighed_by_what_is_found_since() -> None:
    site = reported((10.0, 10.0), (200.0, 200.0))
    before = site.rate()
    for step in range(5, 400, 5):
        site.fetch(step, list(range(2 * PAGES)), changed=False)
    assert site.rate() < before / 5


@pytest.mark.parametrize(("steps", "every"), [(2, 12), (4, 5), (8, 2)])
def test_the_same_beliefs_in_shorter_steps_find_the_same_pages_urgent(steps: int, every: int) -> None:
    """As long as all that was found is within the window."""
    coarse, fine = Site(), Site()
    fine.known = SiteUrgency(signals=Signals().spread(steps))
    fine.add([f"/{'ab'[page % 2]}/{page}" for page in range(2 * PAGES)], step=0)
    for site, length in ((coarse, 1), (fine, steps)):
        site.fetch(every * length, [0, 2, 4, 1], changed=False)
        site.fetch(2 * every * length, [0, 2, 4], changed=True)
    now = 2 * every + 2
    assert now * steps <= WINDOW
    for page in (0, 6, 1, 7):
        assert fine.urgency(page, step=now * steps) / steps == pytest.approx(coarse.urgency(page, step=now), rel=0.03)


# ----------------------------------------------------------------------------------------- what it says of the present


@pytest.mark.parametrize("every", [30, 6])
def test_the_pages_believed_obsolete_are_as_many_as_are(every: int) -> None:
    """Pages that change alone every 30 steps, or 6, each looked at in ten: over many looks, expected and found agree.

    What changed more than once since the last look has been obsolete since the first time.
    """
    rng, site = np.random.default_rng(1), Site()
    stale, expected, found, lasted, stood = np.zeros(2 * PAGES, dtype=np.bool_), 0.0, 0.0, 0.0, 0
    believed = 0.0
    for step in range(1, 1500):
        stale |= rng.random(2 * PAGES) < -np.expm1(-1 / every)
        pages = np.arange(step % 10, 2 * PAGES, 10)
        reported = site.known.observe(pages, stale[pages], step=step)
        stale[pages] = False
        if step > 200:
            expected, found = expected + reported.expected[0], found + reported.changed[0]
            lasted += float(reported.lasted.sum())
            stood += int(stale.sum())
            believed += float(Sites([site.known], step=step).reckon(ALL).obsolete[0])
    assert expected == pytest.approx(found, rel=0.1)
    assert lasted == pytest.approx(stood, rel=0.15)
    assert believed == pytest.approx(stood, rel=0.15)


def test_what_was_obsolete_so_far_grows_by_what_is_obsolete() -> None:
    site = Site()
    site.fetch(10, list(range(0, 40, 3)), changed=True)
    early, late = (Sites([site.known], step=step).reckon(ALL) for step in (20, 24))
    grown = float(late.so_far[0] - early.so_far[0])
    assert grown == pytest.approx(2 * (early.obsolete[0] + late.obsolete[0]), rel=0.15)
    assert late.obsolete[0] - early.obsolete[0] == pytest.approx(4 * early.growing[0], rel=0.3)
