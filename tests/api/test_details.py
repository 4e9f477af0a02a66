"""Details of a collection: the change log backwards, judged URLs, the policy file in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.crawled import SITES, crawled_store
from webfountain.api.details import MAX_JUDGED_URLS, CollectionDetails
from webfountain.api.opening import open_stored
from webfountain.errors import InputError
from webfountain.records import Link
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.api.collection import StoredCollection

SITE = "http://a.example"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredCollection]:
    opened = open_stored(crawled_store(tmp_path_factory.mktemp("details") / "store"))
    yield opened
    opened.close()


def logged(times: Sequence[float]) -> MemoryStore:
    """A store whose change log has an entry at each time."""
    store = MemoryStore(period_s=60.0, fastest_s=1.0)
    for number, at in enumerate(times):
        url = f"{SITE}/{number}"
        store.queues.discover([Link(url, SITE, fingerprint(url))], at=at)
        store.pages.forget(SITE, fingerprint(url), at=at)
    return store


@given(st.lists(st.integers(0, 4000).map(lambda n: n * 997.0 % 50_000), max_size=60), st.integers(0, 60_000))
def test_the_log_backwards_is_the_log_before_a_time_reversed(times: list[float], at: int) -> None:
    store = logged(sorted(times))
    forwards = [entry for _, entry in store.changes.after(None, 1000) if entry.at < at]
    assert list(CollectionDetails(store).entries_before(float(at))) == forwards[::-1]


def test_urls_are_judged_without_sending_them(collection: StoredCollection) -> None:
    found = collection.details.judge([f"{SITES[0]}/3#x", f"{SITES[0]}/none", "no url"], at=1e9)
    assert [(each.url, each.answer) for each in found] == [
        (f"{SITES[0]}/3", "known"),
        (f"{SITES[0]}/none", "taken"),
        ("no url", "refused"),
    ]
    with pytest.raises(InputError, match="at once"):
        collection.details.judge([f"{SITES[0]}/3"] * (MAX_JUDGED_URLS + 1), at=1e9)


def test_checks_robots_plan_and_policy_are_answered(collection: StoredCollection) -> None:
    page = collection.page(f"{SITES[0]}/")
    assert page is not None
    checks = collection.details.checks(page.url)
    assert len(checks) == min(page.checks, 24)
    assert all(each.changed for each in checks), "the home pages change with each visit"
    assert collection.details.checks(f"{SITES[0]}/none") == []
    assert collection.details.robots(SITES[0]).text is None
    with pytest.raises(InputError, match="not known"):
        collection.details.robots("http://c.example")
    assert collection.details.plan(at=1e9).plan is None
    found = collection.details.policy()
    assert (found.writable, "[collection]" in found.text) == (False, True)
