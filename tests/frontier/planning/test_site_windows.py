"""A very large site in windows: each page is worth what it would be of the whole site, and has its turn once."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from tests.frontier.town import DAY, NOW, ONE, Crawl, WindowShelf, crawled, lease_of, pages_of, visit_of
from tests.store.stores import BACKENDS, make_store
from webfountain.clock import ManualClock
from webfountain.core.signals import Signals
from webfountain.errors import StoreError
from webfountain.frontier.batch import SavedSiteData
from webfountain.frontier.planning import kept_sites, site_windows
from webfountain.frontier.planning.kept_sites import halves
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgency_terms import UrgencyTerms
from webfountain.frontier.planning.urgent_pages import UrgentPages
from webfountain.records import Link, SiteState
from webfountain.store.answers import ParkRequest
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from webfountain.frontier.planning.urgent_site import UrgentSite
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

BOUND = 40
PAGES = 200


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_windows, "WINDOW", BOUND)


def records_of(n: int = PAGES) -> list[PageRecord]:
    return pages_of(ONE, n // 2, directory="a") + pages_of(ONE, n - n // 2, directory="b", at=NOW - 2 * DAY)


class Large(Crawl):
    """A crawl of one site, most often in windows, and what is kept of it."""

    def __init__(self, records: Iterable[PageRecord], *, shelf: WindowShelf | None = None, **options: Any) -> None:
        self.shelf = WindowShelf() if shelf is None else shelf
        self.learned = b""
        super().__init__(records, windows=self.shelf.store, **options)

    @classmethod
    def going_on(
        cls, records: list[PageRecord], learned: bytes, *, shelf: WindowShelf | None = None, at: float = NOW
    ) -> Large:
        """A process in which the site is not in memory: it goes on with what was kept."""
        crawl = cls([], shelf=shelf, known=len(records))
        crawl.records, crawl.sites = records, [ONE]
        crawl.url = {fingerprint(record.url): record.url for record in records}
        crawl.divide(len(records))
        assert crawl.admit(ONE, learned=learned, at=at)
        return crawl

    @property
    def site(self) -> UrgentSite:
        return self.urgent.sites.active[ONE]

    @property
    def windows(self) -> Windows:
        assert not self.site.windows.is_whole
        return self.site.windows

    def keep(self, kept: Iterable[tuple[Any, bytes]], *, at: float = NOW) -> None:
        for _, learned in kept:
            self.learned = learned
        self.shelf.settle([], at=at, parts=self.urgent.kept.take_windows())

    def turn(self, price: float = inf, *, at: float = NOW) -> bool:
        """Whether another window came to hand."""
        kept = self.urgent.turn([ONE], price, lambda _: self.records, at=at)
        self.keep(kept, at=at)
        return bool(kept)

    def go_on(self, *, at: float = NOW) -> None:
        """The next window's turn comes."""
        self.windows.turn_at, self.windows.taken_at = at, -inf
        assert self.turn(at=at)

    def around(self, price: float, *, at: float = NOW, most: int = 1000) -> list[str]:
        """What is due of each window in turn, all at one time, as after a long absence."""
        urls: list[str] = []
        for _ in self.windows.numbers:
            urls += self.due(most, price=price, at=at)
            self.go_on(at=at)
        return urls

    def pages_believed(self) -> float:
        """The number of pages about which the forecast has a belief."""
        saved = self.urgent.forecast.saved
        assert saved is not None
        return saved.standing.pages

    def again(self, *, at: float = NOW) -> Large:
        """Another process that goes on with what was kept."""
        return Large.going_on(self.records, self.learned, shelf=self.shelf, at=at)


def worth_of(crawl: Large) -> dict[str, float]:
    """What each page is worth, windows in turn."""
    found: dict[str, float] = {}
    for _ in crawl.windows.numbers if not crawl.site.windows.is_whole else [1]:
        crawl.demand(0.0)
        site = crawl.site
        found |= {crawl.url[site.pages.key(page)]: float(site.ranking.worth[page]) for page in range(len(site))}
        if not site.windows.is_whole:
            crawl.go_on()
    return found


def test_a_page_of_a_window_is_worth_what_it_is_worth_in_the_whole_site() -> None:
    records = records_of()
    parts, whole = Large(records), Crawl(records)
    assert len(parts.windows.numbers) == 8
    assert sum(map(len, (parts.shelf.kept[ONE, number] for number in parts.windows.numbers))) > 0
    whole.demand(0.0)
    site = whole.urgent.sites.active[ONE]
    expected = {whole.url[site.pages.key(page)]: float(site.ranking.worth[page]) for page in range(len(site))}
    found = worth_of(parts)
    assert found.keys() == expected.keys()
    assert [found[url] for url in expected] == pytest.approx([*expected.values()], rel=1e-5)


@pytest.mark.parametrize("pages", [0, 1, BOUND])
def test_a_site_within_the_bound_is_held_as_before(pages: int) -> None:
    records = records_of(pages)
    crawl, before = Large(records), Crawl(records)
    for each in (crawl, before):
        each.urgent.admit(lease_of(ONE), b"", lambda: records, at=NOW)
    assert crawl.site.windows.is_whole
    assert crawl.shelf.kept == {}
    assert not crawl.turn(0.0)
    assert crawl.site.encode() == before.urgent.sites.active[ONE].encode()


def test_over_all_windows_the_pages_are_due_that_would_be_of_the_whole_site_each_once() -> None:
    records = records_of()
    parts, whole = Large(records), Crawl(records)
    whole.demand(0.0)
    price = float(np.median(whole.urgent.sites.active[ONE].ranking.worth))
    expected = whole.due(1000, price=price)
    assert 0 < len(expected) < PAGES
    due = parts.around(price)
    assert sorted(due) == sorted(expected)
    assert parts.around(price) == [], "each once"
    assert parts.site.waiting == len(due)


def test_a_release_that_one_window_found_reaches_the_others() -> None:
    """Directory a was released; some of its pages in one window are fetched."""
    crawl = Large(records_of())
    at = NOW + DAY
    crawl.demand(0.0, at=at)
    urls = [crawl.url[crawl.site.pages.key(page)] for page in range(len(crawl.site))]
    crawl.keep(crawl.fetch(*(url for url in urls if "/a/" in url), kind="changed", at=at))
    crawl.keep(crawl.fetch(*(url for url in urls if "/b/" in url), at=at))
    others = set[str]()
    for _ in range(3):
        assert crawl.turn(at=at)
        site = crawl.site
        crawl.demand(0.0, at=at)
        worth = {crawl.url[site.pages.key(page)]: site.ranking.worth[page] for page in range(len(site))}
        a, b = ([value for url, value in worth.items() if each in url] for each in ("/a/", "/b/"))
        assert min(a) > 3 * max(b), "though b was fetched a day earlier"
        others |= worth.keys()
    assert not others & set(urls)


def test_what_comes_of_a_page_whose_window_is_not_at_hand_is_learned_at_its_turn_also_after_a_kill() -> None:
    crawl = Large(records_of())
    first = crawl.due(3)
    assert crawl.turn()
    crawl.keep(crawl.fetch(first[0], kind="changed", at=NOW + 60))
    crawl.keep(crawl.fetch(first[1], kind="gone", at=NOW + 60, state="gone"))
    assert crawl.site.waiting == 1
    for each in (crawl, crawl.again()):
        while each.site.pages.number(fingerprint(first[0])) is None:
            each.go_on()
        numbers = [each.site.pages.number(fingerprint(url)) for url in first]
        assert [each.site.ranking.candidate_since[number] for number in numbers[:2]] == [NOW + 60, inf]
        assert each.site.observed == {numbers[0]: (each.site.ranking.steps.step(NOW + 60), True)}
        assert set(each.site.ranking.waits) == ({numbers[2]} if each is crawl else set()), (
            "what waits is asked for again"
        )


def test_a_page_that_a_window_met_belongs_to_the_window_of_its_key() -> None:
    crawl = Large(records_of())
    urls = [f"{ONE}/c/{page}" for page in range(60)]
    crawl.url |= {fingerprint(url): url for url in urls}
    crawl.records += [crawled(url, at=NOW) for url in urls]
    crawl.keep(crawl.fetch(*urls, kind="new"))
    found = worth_of(crawl)
    assert {url for url in found if "/c/" in url} == set(urls)
    assert len(found) == PAGES + 60


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_a_site_that_grows_over_the_bound_and_on_is_parted_and_no_page_is_lost(batch: int) -> None:
    crawl = Large(records_of(BOUND))
    urls = [f"{ONE}/{'cd'[page % 2]}/{page}" for page in range(3 * BOUND)]
    crawl.url |= {fingerprint(url): url for url in urls}
    crawl.records += [crawled(url, at=NOW) for url in urls]
    for begin in range(0, len(urls), batch):
        crawl.keep(crawl.fetch(*urls[begin : begin + batch], kind="new"))
        if not crawl.site.windows.is_whole:
            crawl.windows.turn_at = NOW
        crawl.turn()
    for _ in range(12):
        crawl.go_on()
        assert len(crawl.site) <= BOUND
    found = worth_of(crawl)
    assert len(crawl.windows.numbers) >= 4
    assert found.keys() == set(crawl.url.values())
    assert crawl.shelf.numbers(ONE) == sorted(crawl.windows.numbers), "of windows that were parted nothing is kept"
    assert sum(believed.pages for believed in crawl.site.beliefs()) <= len(found)


def test_pages_that_go_are_not_due_and_a_site_that_begins_anew_below_the_bound_has_no_windows() -> None:
    crawl = Large(records_of())
    for record in crawl.records[BOUND:]:
        crawl.keep(crawl.fetch(record.url, kind="gone", state="gone"))
    assert set(crawl.around(0.0)) == {record.url for record in crawl.records[:BOUND]}
    del crawl.records[BOUND:]
    crawl.divide(10 * PAGES)
    assert crawl.admit(ONE, learned=crawl.learned), "steps are longer now"
    assert crawl.site.windows.is_whole
    assert len(crawl.site) == BOUND
    assert crawl.shelf.kept == {}


def test_a_site_that_was_kept_as_a_whole_is_parted_at_its_first_turn() -> None:
    records = records_of()
    whole = Crawl(records)
    crawl = Large.going_on(records, whole.urgent.sites.active[ONE].encode())
    assert len(crawl.site) == PAGES
    assert crawl.turn()
    assert len(crawl.site) <= BOUND
    assert worth_of(crawl).keys() == {record.url for record in records}


@pytest.mark.parametrize("broken", ["hand", "other", "head"])
def test_where_a_window_cannot_be_read_all_begin_anew_and_count_once_in_the_forecast(broken: str) -> None:
    crawl = Large(records_of())
    for _ in crawl.windows.numbers:
        crawl.keep(crawl.fetch(*crawl.due(1, at=NOW + DAY), at=NOW + DAY))
        crawl.go_on(at=NOW + DAY)
    assert crawl.pages_believed() == PAGES
    for number in [*crawl.windows.others] if broken == "other" else [crawl.windows.hand]:
        crawl.shelf.kept[ONE, number] = b"damaged"
    if broken == "other":
        crawl.go_on(at=NOW + DAY)
    else:
        learned = crawl.learned if broken == "hand" else crawl.learned[:20]
        crawl.urgent.wants(lease_of(ONE))
        crawl.urgent.admit(lease_of(ONE), learned, lambda: crawl.records, at=NOW + DAY)
    assert worth_of(crawl).keys() == {record.url for record in crawl.records}
    for _ in crawl.windows.numbers:
        crawl.keep(crawl.fetch(*crawl.due(1, at=NOW + DAY), at=NOW + DAY))
        crawl.go_on(at=NOW + DAY)
    assert crawl.pages_believed() == PAGES


def test_after_a_kill_the_same_pages_are_due_window_by_window() -> None:
    """In mid-turn, with visits of windows that are not at hand, and with lessons that only the last window has."""
    crawl = Large(records_of())
    at = NOW
    for day in range(5):
        at += 3600.0
        urls = crawl.due(6, at=at)
        crawl.keep(crawl.fetch(*urls[:4], kind="changed" if day % 2 else "same", at=at))
        crawl.turn(at=at)
        crawl.keep(crawl.fetch(*urls[4:], kind="changed", at=at + 60), at=at)
        crawl.waiting = []
    crawl.turn(at=at)
    other = crawl.again(at=at)
    crawl.site.rest()  # what waited is asked for again
    for _ in range(9):
        at += 3600.0
        assert crawl.windows.hand == other.windows.hand
        due = crawl.due(5, at=at)
        assert due
        assert due == other.due(5, at=at)
        for each in (crawl, other):
            each.fetch(*due, at=at)
            each.urgent.kept.take_windows()
        turned = crawl.urgent.turn([ONE], 0.0, lambda _: [], at=at)
        parts = crawl.urgent.kept.take_windows()
        assert bool(turned) == bool(other.urgent.turn([ONE], 0.0, lambda _: [], at=at))
        other.urgent.kept.take_windows()
        crawl.shelf.settle([], at=at, parts=parts)


def test_windows_have_turns_of_the_same_length_and_those_that_were_missed_are_made_up_for() -> None:
    crawl = Large(records_of())
    terms = crawl.site.terms
    turn_s = crawl.windows.turn_s(terms)
    assert turn_s * 8 == pytest.approx(terms.turnaround_s)
    seen, at = [crawl.windows.hand], NOW
    for _ in range(7):  # the first cycle is behind: as soon as a window has nothing more
        assert not crawl.turn(0.0, at=at), "while it has something it stays"
        crawl.demand(inf, at=at)
        assert crawl.turn(inf, at=at)
        seen.append(crawl.windows.hand)
    assert sorted(seen) == sorted(crawl.windows.numbers)
    crawl.demand(inf, at=at)
    crawl.turn(inf, at=at)
    assert not crawl.turn(inf, at=at)
    assert crawl.next_at(inf, at=at) <= at + turn_s + crawl.urgent.pace.check_s
    times: list[float] = []
    while len(times) < 9:
        at += turn_s / 10
        if crawl.turn(0.0, at=at):
            times.append(at)
    assert np.diff(times) == pytest.approx([turn_s] * 8, rel=0.11)
    at += 100 * turn_s
    turns = 0
    crawl.demand(inf, at=at)
    while crawl.turn(inf, at=at):
        turns += 1
        crawl.demand(inf, at=at)
    assert 8 <= turns <= 12, "little more than once around, however long it was away"


def test_the_window_of_which_most_is_known_has_its_turn_when_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_windows, "AWAY", 30)
    crawl = Large(records_of())
    crawl.windows.turn_at = NOW + DAY
    last = crawl.windows.others[-1]
    urls = [record.url for record in crawl.records if crawl.windows.number_of(fingerprint(record.url)) == last]
    crawl.keep(crawl.fetch(*urls, at=NOW + 1))
    assert not crawl.turn(at=NOW + 1)
    crawl.keep(crawl.fetch(*urls, at=NOW + 2))
    assert crawl.turn(at=NOW + 2)
    assert crawl.windows.hand == last
    assert len(crawl.site.observed) == len(urls)
    assert crawl.windows.turn_at < NOW + DAY / 10
    crawl.keep(crawl.fetch(urls[0], at=NOW + 3))
    assert Windows.decode(crawl.learned).away.keys() == set(), "they were learned before the window was kept"  # type: ignore[union-attr]


def test_what_is_kept_with_the_site_is_small_and_one_window_is_in_memory() -> None:
    crawl = Large(records_of(2000), known=2000)
    assert len(crawl.site) <= BOUND
    assert len(crawl.windows.numbers) == 64
    crawl.turn()
    assert len(crawl.learned) < 64 * 60
    assert max(len(part) for part in crawl.shelf.kept.values()) < BOUND * 44 + 3000


@given(keys=st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=50, unique=True), depth=st.integers(0, 5))
def test_each_key_is_of_one_window_and_parting_keeps_it_so(keys: list[bytes], depth: int) -> None:
    terms = UrgencyTerms(Signals(), DAY, 10 * DAY, 0.0, weighed=False)
    windows = Windows.begun(depth, terms, NOW)
    numbers = [windows.number_of(key) for key in keys]
    assert all(number.bit_length() == depth + 1 for number in numbers)
    records = [crawled(f"{ONE}/{page}") for page in range(len(keys))]
    site = kept_sites.begin_site(ONE, records, terms, at=NOW)
    whole = msgspec.structs.replace(windows, hand=1, others=[])
    parts = [(1, site)]
    for _ in range(depth):
        parts = [half for number, each in parts for half in halves(each, number)]
    windows.others = [number for number, _ in parts if number != windows.hand]
    assert sum(len(each) for _, each in parts) == len(site)
    for number, each in parts:
        assert all(windows.number_of(each.pages.key(page)) == number for page in range(len(each)))
        assert all(whole.number_of(each.pages.key(page)) == 1 for page in range(len(each)))


def test_where_the_scratch_file_has_no_room_the_store_is_said_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_sites, "TemporaryFile", full)
    with pytest.raises(StoreError, match="No space left"):
        Large(records_of())


def test_without_a_store_for_windows_a_site_is_in_memory_as_a_whole() -> None:
    urgent = UrgentPages(signals=Signals(), period=DAY, capacity=100.0)
    urgent.pace.divide(PAGES, 1)
    urgent.admit(lease_of(ONE), b"", records_of, at=NOW)
    assert len(urgent.sites.active[ONE]) == PAGES
    assert urgent.turn([ONE], inf, lambda _: [], at=NOW) == []
    urgent.observe([visit_of(f"{ONE}/a/1", at=NOW)])
    assert urgent.kept.take_windows() == []


# ------------------------------------------------------------------------------------------------------- in a crawl

START = 1_000_000.0
SMALL = 8
DAYS = 12
NAMES = [f"{directory}/{page}" for page in range(20) for directory in ("docs", "blog")]


def crawl_of(store: FrontierStore, clock: ManualClock) -> Drive:
    """A still site of 41 pages, of which ten may be fetched a day."""
    web = site_of_pages({"": linked(*NAMES)} | dict.fromkeys(NAMES, b"x"))
    budget = "periods = 2\ncapacity_pages_per_period = 10\n[change]\nmin_change = 0"
    collection = collection_of([f"{ONE}/"], rest=budget, politeness="per_ip = false")
    return Drive(collection, web, store=store, clock=clock, lease_seconds=DAY)


def run(drive: Drive, days: float) -> None:
    """As the worker does, ask for work also when nothing has landed."""
    end = drive.clock.now() + days * DAY
    while drive.clock.now() < end:
        drive.run(seconds=DAY / 100)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_store_keeps_windows_for_whoever_has_the_site_next(backend: str, tmp_path: Path) -> None:
    records = records_of()
    store = make_store(backend, tmp_path)
    store.queues.discover([Link(record.url, ONE, fingerprint(record.url)) for record in records[:1]], at=1.0)
    found = dict[str, tuple[list[bytes], int]]()
    for owner in ("one", "two"):
        [lease] = store.sites.activate(9, owner=owner, until=NOW + DAY, at=NOW + DAY)
        urgent = UrgentPages(signals=Signals(), period=DAY, capacity=100.0, windows=store)
        urgent.pace.divide(PAGES, 1)
        urgent.admit(lease, lease.record.learned, lambda: records if not found else [], at=NOW)
        for turn in range(10):
            due = urgent.due({ONE: 2}, 0.0, at=NOW).get(ONE, [])
            found[f"{owner} {turn}"] = due, len(urgent.sites.active[ONE])
            windows = urgent.sites.active[ONE].windows
            assert not windows.is_whole
            windows.turn_at = windows.taken_at = -inf
            kept = urgent.turn([ONE], inf, lambda _: [], at=NOW)
            store.queues.settle([], at=NOW, learned=kept, parts=urgent.kept.take_windows())
            hand = windows.hand
        assert store.sites.part(ONE, hand)
        store.sites.park([ParkRequest(lease, NOW + DAY, SiteState())], at=NOW)
    store.close()
    given = {key for urls, _ in found.values() for key in urls}
    assert len(given) >= 16, "each window gave pages"
    assert {pages for _, pages in found.values()} != {0}
    assert sum(found[f"two {turn}"][1] for turn in range(8)) == PAGES, "the second had all windows, and read no page"


@pytest.mark.untraced
@pytest.mark.parametrize("backend", ["memory", "embedded"])
def test_over_a_store_the_budget_is_used_and_no_page_forgotten_also_after_a_restart(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_windows, "WINDOW", SMALL)
    clock = ManualClock(START)
    store = make_store(backend, tmp_path)
    drive = crawl_of(store, clock)
    run(drive, DAYS)
    record = drive.site(ONE)
    windows = Windows.decode(SavedSiteData.of(record).urgency)
    assert windows is not None
    assert len(windows.numbers) >= 5
    asked = [url for at, kind, url in drive.log if kind == "page" and at > START + 4 * DAY]
    assert len(asked) == pytest.approx(10 * (DAYS - 4), abs=2), "within 2 %, and one that is under way"
    counts = [asked.count(f"{ONE}/{name}") for name in NAMES]
    assert min(counts) >= 1
    assert max(counts) <= 3, "once in four days"
    drive.frontier.close()
    if backend != "memory":
        store.close()
        store = make_store(backend, tmp_path)
    monkeypatch.setattr(kept_sites, "begin_site", None)  # its pages are not read again
    again = crawl_of(store, clock)
    run(again, 4)
    asked = again.asked()
    assert len(asked) == pytest.approx(40, abs=2)
    assert len(set(asked)) >= 36
    store.close()
