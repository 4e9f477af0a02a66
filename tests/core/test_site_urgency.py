"""One site: what its fetches teach of its pages, and that a site taken up from its past knows as much."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.core.approaching import steps_until
from webfountain.core.activity import WINDOW
from webfountain.core.signals import Signals
from webfountain.core.site_urgency import Sites, SiteUrgency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.core.arrays import Array, Ints

PAGES = 24
PATHS = [f"/{'docs' if page % 2 else 'blog'}/{page}" for page in range(PAGES)]
DOCS, BLOG = np.arange(1, PAGES, 2), np.arange(0, PAGES, 2)
ALL = np.arange(PAGES)


def observed_time(*, step: int = 0, importance: Array | None = None, **signals: bool) -> SiteUrgency:
    """A site of two directories of twelve pages each, all fetched first in `step`."""
    site = SiteUrgency(signals=Signals(**signals), step=step)
    weights = np.ones(PAGES) if importance is None else importance
    assert site.add(PATHS, since=np.full(PAGES, step), importance=weights).tolist() == ALL.tolist()
    return site


def observe(site: SiteUrgency, pages: Ints | Sequence[int], *, step: int, changed: bool) -> None:
    site.observe(np.array(pages), np.full(len(pages), changed), step=step)


def fresh_time(site: SiteUrgency, pages: Ints) -> Array:
    """The steps for which pages stay unchanged after a change, if they have changed ten steps later, by importance."""
    sites = Sites([site], step=site.memory.step + 10)
    still, chance = sites.unchanged()
    return ((sites.urgency(np.arange(len(site))) + still) / chance)[pages]


def mean_rate(site: SiteUrgency, pages: Ints) -> Array:
    """Changes per step that are believed of each page."""
    sites, prior = Sites([site], step=site.memory.step), site.signals.page_events
    events, exposure = sites.page[:2]
    of_section = sites.activity.mean_rate(sites.unchecked.section)
    return np.asarray((of_section * (prior + events) / (prior + exposure))[pages])


def test_pages_are_numbered_in_order_and_keep_what_is_known_of_them_when_more_come() -> None:
    site = observed_time(importance=np.full(PAGES, 3.0))
    observe(site, DOCS, step=5, changed=True)
    before = site.urgency(ALL, step=9)
    more = site.add([f"/new/{page}" for page in range(300)], since=np.full(300, 9), importance=np.ones(300))
    assert more.tolist() == list(range(PAGES, PAGES + 300))
    assert len(site) == PAGES + 300
    assert site.urgency(ALL, step=9).tolist() == before.tolist()
    assert (site.urgency(more, step=12) > 0).all(), "their weight is the one they came with"


def test_a_page_just_fetched_is_not_urgent_and_grows_more_so() -> None:
    site = observed_time()
    observe(site, ALL, step=4, changed=False)
    assert site.urgency(ALL, step=4).tolist() == [0.0] * PAGES
    later = [float(site.urgency(ALL[:1], step=step)[0]) for step in (5, 8, 20)]
    assert 0 < later[0] < later[1] < later[2]


def test_a_change_makes_its_directory_more_urgent_than_another() -> None:
    site = observed_time()
    observe(site, BLOG[:3], step=6, changed=False)
    observe(site, DOCS[:3], step=6, changed=True)
    urgency = site.urgency(ALL, step=6)
    assert urgency[DOCS[3:]].min() > 2 * urgency[BLOG[3:]].max()


def test_directories_are_equally_urgent_without_siblings_and_sections() -> None:
    site = observed_time(siblings=False, sections=False)
    observe(site, DOCS[:3], step=6, changed=True)
    urgency = site.urgency(ALL, step=6)
    assert urgency[DOCS[3:]] == pytest.approx(urgency[BLOG[3:]])


def test_importance_is_a_factor_of_the_urgency() -> None:
    weights = np.linspace(0.5, 4.0, PAGES)
    plain, weighed = observed_time(), observed_time(importance=weights)
    for site in (plain, weighed):
        observe(site, DOCS[:3], step=6, changed=True)
    assert weighed.urgency(ALL, step=9) == pytest.approx(weights * plain.urgency(ALL, step=9))


def test_a_page_that_had_no_copy_teaches_nothing_and_is_new() -> None:
    renewed, unreported = observed_time(), observed_time()
    renewed.renew(DOCS[:2], step=7)
    assert renewed.urgency(DOCS[:2], step=7).tolist() == [0.0, 0.0]
    assert renewed.urgency(BLOG, step=7).tolist() == unreported.urgency(BLOG, step=7).tolist()


def test_fetching_a_surely_obsolete_page_gains_its_mean_time_between_changes() -> None:
    site = observed_time()
    for step in range(6, 600, 6):
        observe(site, DOCS, step=step, changed=step % 30 == 0)
        observe(site, BLOG, step=step, changed=False)
    assert fresh_time(site, DOCS) == pytest.approx(np.full(len(DOCS), 30.0), rel=0.25)
    assert fresh_time(site, BLOG).min() > 100


# ------------------------------------------------------------------------------------------------ from the past


def lived(seed: int, *, steps: int = 60, **signals: bool) -> tuple[SiteUrgency, SiteUrgency, SiteUrgency]:
    """A site that heard all of its past itself, one told of it at the end, and one told only of the last fetches.

    Docs change in bursts of the whole directory about every 25 steps, each blog page alone at a rate of its own. A page
    in three is fetched in a step; what is told is what a store keeps (`watch`).
    """
    rng = np.random.default_rng(seed)
    site = observed_time(step=0, importance=None, **signals)
    rates = rng.gamma(0.5, 1 / 20, PAGES)
    since, events, seen = np.zeros(PAGES, dtype=np.int64), np.zeros(PAGES), np.zeros(PAGES)
    stale = np.zeros(PAGES, dtype=bool)
    for step in range(1, steps + 1):
        stale[BLOG] |= rng.random(len(BLOG)) < -np.expm1(-rates[BLOG])
        stale[DOCS] |= rng.random() < 1 / 25
        pages = np.flatnonzero(rng.random(PAGES) < 1 / 3)
        site.observe(pages, stale[pages], step=step)
        events[pages] += stale[pages]
        seen[pages] += (step - since[pages]) / (1 + stale[pages])
        since[pages], stale[pages] = step, False

    def reported(events: Array, seen: Array) -> SiteUrgency:
        return SiteUrgency.resumed(
            PATHS, since=since, events=events, observed_time=seen, importance=np.ones(PAGES),
            signals=Signals(**signals), step=steps,
        )  # fmt: skip

    return site, reported(events, seen), reported(np.zeros(PAGES), np.zeros(PAGES))


def test_a_site_taken_up_from_its_past_orders_its_pages_much_as_one_that_saw_all_of_it() -> None:
    """Long after, when what was in the air at the end no longer counts."""
    agree, blind = [], []
    for seed in range(8):
        urgency = [site.urgency(ALL, step=90) for site in lived(seed)]
        ranks = [np.argsort(np.argsort(each)) for each in urgency]
        agree.append(np.corrcoef(ranks[0], ranks[1])[0, 1])
        blind.append(np.corrcoef(ranks[0], ranks[2])[0, 1])
    assert min(agree) > 0.8
    assert np.mean(agree) > 0.85
    assert np.mean(blind) < 0.6


def test_a_site_taken_up_believes_the_rates_that_one_believes_that_saw_all_of_it() -> None:
    ratio = np.array(
        [mean_rate(reported, ALL) / mean_rate(received, ALL) for received, reported, _ in map(lived, range(8))]
    )
    assert 0.8 < np.median(ratio) < 1.25
    assert np.all((ratio > 0.6) & (ratio < 1.6))


def test_without_histories_a_site_taken_up_knows_none_either() -> None:
    received, taken_up, _ = lived(1, history=False, siblings=False)
    for site in (received, taken_up):
        for pages in (DOCS, BLOG):
            assert np.ptp(mean_rate(site, pages)) == 0.0, "each page has its section's rate"


def test_a_site_taken_up_learns_on() -> None:
    _, site, _ = lived(2)
    observe(site, ALL, step=61, changed=False)
    before = site.urgency(ALL, step=70)
    observe(site, DOCS[:4], step=70, changed=True)
    after = site.urgency(ALL, step=70)
    assert (after[DOCS[4:]] > 2 * before[DOCS[4:]]).all()


def test_a_site_of_pages_fetched_long_ago_or_of_none_is_taken_up_too() -> None:
    old = SiteUrgency.resumed(
        ["/a", "/b"], since=np.array([3, 9_000]), events=np.zeros(2), observed_time=np.zeros(2), importance=np.ones(2),
        signals=Signals(), step=10_000,
    )  # fmt: skip
    urgency = old.urgency(np.arange(2), step=10_000 + WINDOW)
    assert urgency[0] > urgency[1] > 0

    none = np.array([])
    empty = SiteUrgency.resumed(
        [], since=none.astype(np.int64), events=none, observed_time=none, importance=none, signals=Signals(), step=50
    )  # fmt: skip
    assert len(empty) == 0
    assert empty.urgency(np.array([], dtype=np.int64), step=60).tolist() == []


# ------------------------------------------------------------------------------------------------ at a price


@pytest.mark.parametrize("seed", range(4))
def test_a_site_that_was_stored_goes_on_as_the_one_that_was_not(seed: int) -> None:
    site = lived(seed, steps=150)[0]
    again = SiteUrgency.decode(site.encode(), signals=Signals())
    assert len(again) == PAGES
    for step in (150, 155, 200, 290):
        assert again.urgency(ALL, step=step) == pytest.approx(site.urgency(ALL, step=step), rel=1e-4)
        for each in (site, again):
            observe(each, DOCS[:3], step=step, changed=step % 2 == 0)
    for each in (site, again):
        each.add(["/new/1", "/docs/new"], since=np.full(2, 291), importance=np.ones(2))
        observe(each, [PAGES], step=295, changed=True)
    every = np.arange(PAGES + 2)
    assert again.urgency(every, step=300) == pytest.approx(site.urgency(every, step=300), rel=1e-4)
    assert np.argsort(-again.urgency(every, step=300)).tolist() == np.argsort(-site.urgency(every, step=300)).tolist()


def test_a_stored_site_is_small_and_unreadable_data_raise() -> None:
    site = lived(1, steps=300)[0]
    assert len(site.encode()) < 6_000
    for data in (b"", b"something else", site.encode()[:-5]):
        with pytest.raises(ValueError, match="cannot be read"):
            SiteUrgency.decode(data, signals=Signals())


def test_sites_reckoned_together_are_each_as_urgent_as_alone() -> None:
    """Whatever their sizes, and however long ago they learned last."""
    sites = [lived(seed, steps=40 + 20 * seed)[0] for seed in range(4)]
    alone = [site.urgency(ALL, step=160) for site in sites]
    reckoned = [Sites([site], step=160).reckon(ALL >= 0) for site in sites]
    together = Sites(sites, step=160)
    assert together.urgency(np.arange(4 * PAGES)) == pytest.approx(np.concatenate(alone))
    for part, whole in zip(
        zip(*reckoned, strict=True), together.reckon(np.ones(4 * PAGES, dtype=np.bool_)), strict=True
    ):
        assert np.concatenate(part) == pytest.approx(whole)
    for site, before in zip(sites, alone, strict=True):
        assert site.urgency(ALL, step=160).tolist() == before.tolist(), "questions teach nothing"


@pytest.mark.parametrize("seed", range(3))
def test_the_chances_of_the_pages_add_up_to_the_obsolete_pages_of_the_site(seed: int) -> None:
    for site in lived(seed):
        sites = Sites([site], step=70)
        _, chances = sites.unchanged()
        assert np.all((chances >= 0.0) & (chances < 1.0))
        assert chances.sum() == pytest.approx(sites.reckon(np.ones(len(site), dtype=np.bool_)).obsolete.sum())


def test_what_sites_learn_together_is_what_each_would_have_learned_alone() -> None:
    for changed in (True, False):
        alone, both = [lived(seed)[0] for seed in range(3)], [lived(seed)[0] for seed in range(3)]
        for site in alone:
            observe(site, DOCS[:4], step=70, changed=changed)
        together = Sites(both, step=70)
        pages = np.concatenate([begin + DOCS[:4] for begin in together.offset[:-1]])
        found = together.observe(pages, np.full(len(pages), changed), np.full(len(pages), 70))
        together.keep()
        assert found.changed.tolist() == [4.0 * changed] * 3
        for one, other in zip(alone, both, strict=True):
            assert other.urgency(ALL, step=90) == pytest.approx(one.urgency(ALL, step=90), rel=1e-5)


def test_a_site_that_learned_with_others_holds_nothing_of_theirs() -> None:
    """A view would: one site that stays in memory then keeps all of its batch there."""
    sites = [lived(seed)[0] for seed in range(8)]
    Sites(sites, step=70).keep()
    held = [each for each in gc.get_referents(sites[0], sites[0].memory) if isinstance(each, np.ndarray)]
    assert len(held) >= 6
    assert [each.nbytes for each in held if each.base is not None and each.base.nbytes > 2 * each.nbytes] == []


def reached(site: SiteUrgency, pages: Ints, price: float, *, step: int) -> tuple[int, int]:
    """When asking again as often as told finds a page that is worth the price, and after how many askings."""
    for asked in range(40):
        steps = steps_until(site, pages, price, step=step)
        if steps <= 0.0 or steps == np.inf:
            return step, asked
        assert site.urgency(pages, step=step + max(int(np.ceil(steps)) - 1, 0)).max() <= price * 1.02, "never late"
        step += max(int(steps), 1)
    raise AssertionError("asked for ever")


@pytest.mark.parametrize("pages", [ALL, DOCS, BLOG[:1]])
@pytest.mark.parametrize("times", [1.2, 3.0, 10.0])
def test_no_page_reaches_a_price_before_the_predicted_step_and_some_page_does_soon_after(
    pages: Ints, times: float
) -> None:
    site = lived(2)[0]
    price = times * float(site.urgency(pages, step=61).max())
    step, asked = reached(site, pages, price, step=61)
    assert asked <= 12
    worth = site.urgency(pages, step=step).max()
    assert worth >= price * 0.98 or steps_until(site, pages, price, step=step) == np.inf
    assert site.urgency(pages, step=max(step - 2, 61)).max() <= price * 1.02


def test_no_page_ever_reaches_a_price_above_what_any_can_save() -> None:
    site = observed_time()
    assert steps_until(site, ALL, 1e9, step=0) == np.inf
    assert steps_until(site, np.array([], dtype=np.int64), 0.0, step=0) == np.inf


def test_of_a_large_site_the_first_page_to_reach_a_price_is_found_too() -> None:
    site = SiteUrgency(signals=Signals())
    rng = np.random.default_rng(1)
    many = site.add([f"/{page % 7}/{page}" for page in range(2000)], since=rng.integers(0, 40, 2000),
                    importance=rng.uniform(0.5, 2.0, 2000))  # fmt: skip
    site.observe(many[::3], rng.random(len(many[::3])) < 0.3, step=41)
    price = 3.0 * float(site.urgency(many, step=41).max())
    step, asked = reached(site, many, price, step=41)
    assert step > 42
    assert asked <= 12
    assert site.urgency(many, step=step - 2).max() <= price * 1.02
    assert site.urgency(many, step=step).max() >= price * 0.98


@pytest.mark.parametrize("later", [0, 3, WINDOW - 9])
def test_a_part_of_a_site_goes_on_with_what_another_learned(later: int) -> None:
    """As if all its pages had been one, unless it stays away for longer than the window."""
    whole, upper = observed_time(), np.arange(PAGES) >= PAGES // 2
    observe(whole, ALL, step=4, changed=False)
    first, second = whole.some(~upper), whole.some(upper)
    for site in (whole, first):
        observe(site, DOCS[: PAGES // 4], step=8, changed=True)
        observe(site, DOCS[: PAGES // 4], step=9 + later, changed=False)
    step = 9 + later
    second.follow(first)
    pages = np.arange(PAGES // 2)
    assert second.urgency(pages, step=step) == pytest.approx(whole.urgency(ALL[upper], step=step), rel=1e-5)
    assert first.urgency(pages, step=step) == pytest.approx(whole.urgency(ALL[~upper], step=step), rel=1e-5)
    first.follow(second)
    assert first.urgency(pages, step=step) == pytest.approx(whole.urgency(ALL[~upper], step=step), rel=1e-5)
