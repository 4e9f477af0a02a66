"""Details of a collection: the change log backwards, judged URLs, the policy file in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.crawled import PAGES, SITES, crawled_store
from webfountain.api.details import MAX_JUDGED_URLS, CollectionDetails
from webfountain.api.opening import open_collection, open_stored
from webfountain.errors import InputError
from webfountain.ranking.link_journal import NOFOLLOW
from webfountain.ranking.link_log import LinkLog
from webfountain.records import Link
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

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
    assert list(CollectionDetails(store, "memory:").entries_before(float(at))) == forwards[::-1]


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


KEEP_ALL = 'capacity_pages_per_period = 60\n[repository]\nkeep = "all"'
"""A budget, so that sections are learned, and all versions."""


def test_versions_of_a_page_are_listed_read_and_compared(tmp_path: Path) -> None:
    url = crawled_store(tmp_path / "kept", seconds=1800.0, rest=KEEP_ALL)
    with open_collection(url) as collection:
        home = f"{SITES[0]}/"
        versions = collection.versions(home)
        assert len(versions) > 2
        assert [each.fetched for each in versions] == sorted((each.fetched for each in versions), reverse=True)
        assert {each.title for each in versions} == {"Page /"}
        new, old = versions[0].fetched, versions[-1].fetched
        assert collection.copy(home).fetched == new
        assert collection.copy(home, fetched=old).fetched == old
        assert f"{int(old)} words of a page" in collection.text(home, fetched=old)
        diff = collection.compare(home, old=old, new=new).diff
        assert f"-{int(old)} words of a page" in diff
        assert f"+{int(new)} words of a page" in diff
        assert len(collection.versions(f"{SITES[0]}/3")) == 1
        with pytest.raises(InputError, match="no version"):
            collection.copy(home, fetched=old + 0.5)


def test_sections_have_the_rates_that_a_crawl_learned(tmp_path: Path, collection: StoredCollection) -> None:
    without = collection.details.sections(SITES[0])
    assert (without.learned, without.items[0].path, without.items[0].pages) == (False, "", PAGES)
    assert without.items[0].changes_per_day > 0
    with open_collection(crawled_store(tmp_path / "learned", seconds=1800.0, rest=KEEP_ALL)) as learned:
        found = learned.details.sections(SITES[0])
    assert (found.learned, found.items[0].pages) == (True, PAGES)
    assert found.items[0].changes_per_day > 0
    assert collection.details.sections("http://unknown.example").items[0].pages == 0


def test_the_links_of_a_page_are_found_where_they_are_logged(tmp_path: Path, collection: StoredCollection) -> None:
    assert not collection.details.links(f"{SITES[0]}/3").logged
    url = crawled_store(tmp_path / "linked", seconds=1.0)
    log = LinkLog(str(tmp_path / "linked" / "links"), writer="test")
    links = [Link(f"{SITES[1]}/{number}", SITES[1], fingerprint(f"{SITES[1]}/{number}")) for number in range(3)]
    log.append(f"{SITES[0]}/3", SITES[0], at=1.0, links=links, flags=bytes([0, NOFOLLOW, 0]))
    log.close()
    with open_collection(url) as opened:
        out = opened.details.links(f"{SITES[0]}/3")
        assert [(each.url, each.followed) for each in out.out] == [
            (f"{SITES[1]}/0", True), (f"{SITES[1]}/1", False), (f"{SITES[1]}/2", True)
        ]  # fmt: skip
        assert [each.url for each in opened.details.links(f"{SITES[1]}/0").into] == [f"{SITES[0]}/3"]
