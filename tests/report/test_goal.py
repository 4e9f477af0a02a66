"""What `plan show --goal` says, from the census of a crawl that fetched all pages four times a day."""

from __future__ import annotations

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.report.test_plan import DAY, HOME, web
from webfountain.core.goals import Goal
from webfountain.errors import InputError
from webfountain.report.goal import goal_document, goal_of, goal_words


@pytest.fixture(scope="module")
def drive() -> Drive:
    """A crawl of ten days of 61 pages, most of which change every day."""
    driven = Drive(collection_of([f"{HOME}/"], delay_factor=0), web)
    driven.run(seconds=10 * DAY)
    return driven


def test_a_goal_is_read_and_another_text_is_an_error() -> None:
    assert goal_of("obsolete=2%") == Goal(0.02)
    assert goal_of("older=7d:5%") == Goal(0.05, 7 * DAY)
    for text in ("obsolete=0%", "obsolete=2", "older=5%", "older=7x:5%", "fresh=2%", "obsolete=1.2.3%"):
        with pytest.raises(InputError, match="--goal"):
            goal_of(text)


def test_a_goal_that_is_nearly_held_costs_about_the_present_fetches(drive: Drive) -> None:
    at = drive.clock.now()
    now = goal_document(drive.store, Goal(0.5), at=at)
    assert now is not None
    held = goal_document(drive.store, Goal(now["share_now"]), at=at)
    assert held is not None
    assert held["fetches"] <= held["fetches_now"] * 1.01
    harder = goal_document(drive.store, Goal(now["share_now"] / 2), at=at)
    assert harder is not None
    assert harder["fetches"] > held["fetches"] > harder["fetches"] / 4
    assert harder["less_fetches"] == pytest.approx(0.9 * harder["fetches"])
    assert "would leave" in goal_words(harder)
    msgspec.json.encode(harder)


def test_without_measurements_there_is_no_answer() -> None:
    assert goal_document(Drive(collection_of([f"{HOME}/"]), web).store, Goal(0.1), at=DAY) is None
