"""Explanations of a site: trust is earned by foretelling, and kept."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.approaching import steps_until
from webfountain.core.explanations import FIRST_ODDS, Explanations, Predictions, TrustInSections, log_odds_of
from webfountain.core.independent_pages import COLUMNS, FIRST_PRIOR
from webfountain.core.signals import Signals
from webfountain.core.site_urgency import Sites, SiteUrgency


def test_the_better_forecast_gains_odds_and_no_visit_is_certain() -> None:
    sections, alone, changed = np.array([0.9, 0.1, 1.0]), np.array([0.1, 0.1, 0.0]), np.array([True, False, False])
    gained = log_odds_of(sections, alone, changed)
    assert gained[0] == pytest.approx(np.log(9))
    assert gained[1] == 0.0
    assert -10 < gained[2] < -9


def test_the_odds_are_kept_and_begin_anew_with_another_version() -> None:
    trust = TrustInSections(-1.5, 7.0, FIRST_PRIOR, activity=-3.25)
    again = TrustInSections.decode(trust.encode())
    assert (again.log_odds, again.fetches, again.activity) == (-1.5, 7.0, -3.25)
    assert again.prior.tolist() == FIRST_PRIOR.tolist()
    earlier = TrustInSections.decode(trust.encode()[:-4])
    assert (earlier.log_odds, earlier.activity) == (-1.5, TrustInSections.begun().activity)
    for data in (b"", b"week" * 21):
        assert TrustInSections.decode(data).log_odds == TrustInSections.begun().log_odds


def visited(*, together: bool, signals: Signals, pages: int = 24, steps: int = 360) -> SiteUrgency:
    """A site in one directory, three visits a step: all of it changes at once, or each page at a rate of its own."""
    rng = np.random.default_rng(5)
    site = SiteUrgency(signals=signals)
    site.add([f"/a/{page}" for page in range(pages)], since=np.zeros(pages, dtype=np.int64), importance=np.ones(pages))
    rate = np.geomspace(1 / 2000, 1.0, pages)
    last = np.zeros(pages, dtype=np.int64)
    held = np.zeros(pages, dtype=np.int64)
    version = np.zeros(pages, dtype=np.int64)
    for step in range(1, steps):
        version += step % 90 == 0 if together else rng.random(pages) < rate
        some = np.argsort(last, kind="stable")[:3]
        site.observe(some, version[some] != held[some], step=step)
        last[some], held[some] = step, version[some]
    return site


def test_a_site_of_pages_that_change_alone_comes_to_be_trusted_as_such_and_one_of_releases_does_not() -> None:
    signals = Signals().lasting(8.0)
    alone, together = (visited(together=each, signals=signals) for each in (False, True))
    assert alone.trust.log_odds < -1.0
    assert together.trust.log_odds > 4.0
    without = visited(together=False, signals=Signals(independent=False).lasting(8.0), steps=40)
    assert without.trust.log_odds == TrustInSections.begun().log_odds


def test_bursts_come_to_count_where_they_foretell_changes_and_to_mean_nothing_where_pages_change_alone() -> None:
    signals = Signals().lasting(8.0)
    assert visited(together=True, signals=signals).trust.activity > 4.0
    alone = visited(together=False, signals=signals)
    assert alone.trust.activity < -4.0
    alone.trust = alone.trust._replace(log_odds=FIRST_ODDS)
    pages, now = np.arange(len(alone)), 361
    by_mean_rates = alone.urgency(pages, step=now)
    alone.believe(Signals(siblings=False).lasting(8.0))
    assert alone.urgency(pages, step=now) == pytest.approx(by_mean_rates)
    alone.believe(signals)
    alone.trust = alone.trust._replace(activity=FIRST_ODDS)
    assert alone.urgency(pages, step=now) != pytest.approx(by_mean_rates, rel=0.01)


def test_sections_lose_against_pages_alone_by_their_activity_also_where_bursts_mean_nothing() -> None:
    """Their mean rates predict pages that change alone as well as such pages do."""
    trust = TrustInSections.begun()._replace(fetches=0.0, activity=-FIRST_ODDS)
    explanations = Explanations([trust], signals=Signals())
    predicted = Predictions(active=np.array([0.5]), even=np.array([0.1]), alone=np.array([0.1]))
    explanations.learn(np.array([0]), predicted, np.array([False]), [np.zeros((COLUMNS, 20))])
    assert explanations.trusts[0].log_odds == pytest.approx(FIRST_ODDS - np.log(0.9 / 0.5), abs=0.01)


@pytest.mark.parametrize("activity", [-FIRST_ODDS, 0.0, FIRST_ODDS])
def test_no_page_of_a_mixed_site_reaches_a_price_sooner_than_was_said(activity: float) -> None:
    site = visited(together=False, signals=Signals().lasting(8.0), steps=200)
    site.trust = site.trust._replace(activity=activity)
    now = 201
    pages = np.arange(len(site))
    worth = site.urgency(pages, step=now)
    for factor in (1.1, 2.0, 8.0):
        price = factor * float(worth.max())
        ahead = steps_until(site, pages, price, step=now)
        before = now + int(min(ahead, 300.0) * 0.999)
        assert Sites([site], step=before).urgency(pages).max() <= price * (1 + 1e-9)


def test_what_an_earlier_version_kept_is_read_and_learned_from_then_on() -> None:
    import msgspec

    site = visited(together=True, signals=Signals().lasting(8.0), steps=100)
    parts = msgspec.msgpack.decode(site.encode())
    parts[4], parts[7] = b"", parts[7][: 16 * len(site)]
    old = SiteUrgency.decode(msgspec.msgpack.encode(parts), signals=site.signals)
    assert old.trust.log_odds == TrustInSections.begun().log_odds
    old.observe(np.arange(3), np.array([True, False, True]), step=120)
    assert SiteUrgency.decode(old.encode(), signals=site.signals).trust.fetches < np.inf
