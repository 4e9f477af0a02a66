"""What leaves the disk and what must not: superseded files, compaction, take-down, with the reference store."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from tests.repository.captures import Crawl, capture, check, records, url_of
from webfountain.errors import RepositoryError
from webfountain.policy.tables import RepositoryTable
from webfountain.policy.units import Size
from webfountain.repository.repository import Repository
from webfountain.repository.retention import ErasureResult, TidyResult
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from webfountain.records import Copy, Move, PageRecord

FILE = 30_000
"""Rotation size of these tests, bytes; a body has 1000 that do not compress."""


def bounded(max_bytes: int | None) -> RepositoryTable:
    return RepositoryTable(max_bytes=None if max_bytes is None else Size(max_bytes))


class Life:
    """A repository and a store over some pages, and what every page's newest body should be."""

    def __init__(self, directory: Path, *, max_bytes: int | None = None, rotate_bytes: int = FILE) -> None:
        self.directory = directory
        self.repository = Repository(directory, rotate_bytes=rotate_bytes, rules=bounded(max_bytes))
        self.crawl = Crawl()
        self.newest: dict[str, bytes] = {}

    def fetch(self, numbers: Sequence[int]) -> list[Copy | None]:
        """Fetch pages, each with a new body, and settle them."""
        bodies = {url_of(number): os.urandom(1000) for number in numbers}
        copies = self.repository.write([capture(url, body) for url, body in bodies.items()])
        self.crawl.settle(list(bodies), copies)
        self.repository.settled(copies)
        self.newest |= bodies
        return copies

    def tidy(self) -> TidyResult:
        """Tidy, then look at everything."""
        done = self.repository.tidy(self.crawl.store.pages)
        self.check_valid()
        return done

    def check_valid(self) -> None:
        """Every page's newest body is there, and other tools find no fault."""
        for url, body in self.newest.items():
            copy = self.crawl.copy(url)
            assert copy is not None
            assert self.repository.read(copy, url).body == body
        assert check(self.directory) == (0, "")

    def files(self) -> list[int]:
        """Numbers of the WARC files that are there."""
        return sorted(int(path.name[-16:-8]) for path in self.directory.glob("*.warc.gz"))


class Dies(Exception):
    """The process ends here."""


class OtherRecords:
    """The page records of a store as the tidying sees it at a bad moment; `relocate` is the test's."""

    def __init__(self, crawl: Crawl, relocate: Callable[[Sequence[Move]], int]) -> None:
        self._store = crawl.store
        self.relocate = relocate

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        return self._store.pages.copies(repository=repository)

    def get(self, site: str, key: bytes) -> PageRecord | None:
        return self._store.pages.get(site, key)


def dying(crawl: Crawl, *, after: bool) -> OtherRecords:
    """The process dies when the store is told of moves: before, or right after it took them in."""

    def relocate(moves: Sequence[Move]) -> int:
        if after:
            crawl.store.pages.relocate(moves)
        raise Dies

    return OtherRecords(crawl, relocate)


def settled_again(crawl: Crawl) -> OtherRecords:
    """All pages are settled with the place they had before, right after they were told of the new one."""
    return OtherRecords(crawl, lambda moves: 0)


def test_a_file_is_deleted_when_all_its_copies_are_superseded(tmp_path: Path) -> None:
    """Not before: one page that did not change keeps the file."""
    life = Life(tmp_path)
    for _ in range(3):
        life.fetch(range(40))
    assert life.files()[:2] == [1, 2]
    done = life.tidy()
    assert 1 not in life.files()
    assert done.files >= 2
    assert done.bytes > 2 * FILE
    life.fetch(range(1, 40))
    life.fetch(range(1, 40))
    life.tidy()
    home = life.crawl.copy(url_of(0))
    assert home is not None
    assert home.file in life.files()
    assert not [path for path in tmp_path.glob("*.index") if not path.with_suffix(".warc.gz").exists()]


def test_a_file_with_an_unsettled_capture_stays(tmp_path: Path) -> None:
    """Between write and settle no page names a copy: it is new, not superseded."""
    life = Life(tmp_path)
    late = life.repository.write([capture(url_of(900), b"late")])
    for _ in range(3):
        life.fetch(range(40))
    life.tidy()
    assert 1 in life.files()
    life.crawl.settle([url_of(900)], late)
    life.repository.settled(late)
    life.newest[url_of(900)] = b"late"
    life.tidy()
    assert 1 in life.files()
    life.repository.settled(life.repository.write([capture(url_of(900), b"of a lost lease")]))
    life.fetch([900])
    life.tidy()
    assert 1 not in life.files()


def test_keep_all_deletes_nothing(tmp_path: Path) -> None:
    """And says what to do when its limit is reached."""
    life = Life(tmp_path)
    life.repository.close()
    life.repository = Repository(
        tmp_path, rotate_bytes=FILE, rules=RepositoryTable(keep="all", max_bytes=Size(100_000))
    )
    life.fetch(range(20))
    life.fetch(range(20))
    assert life.tidy() == TidyResult()
    life.fetch(range(20))
    life.fetch(range(20))
    with pytest.raises(RepositoryError, match=r'max_bytes = 100000, and keep = "all" deletes nothing: raise max_bytes'):
        life.repository.tidy(life.crawl.store.pages)
    life.check_valid()


def test_a_folder_above_its_limit_is_compacted_and_no_newest_copy_is_lost(tmp_path: Path) -> None:
    """One page in four stays the same, so that every file has a live record and none can simply be deleted."""
    life = Life(tmp_path, max_bytes=250_000)
    moved = 0
    random_pages = random.Random(1)
    for batch in range(30):
        life.fetch([500 + batch, *random_pages.sample(range(30), 9)])
        moved += life.tidy().moved
        assert life.repository.bytes_on_disk() <= 250_000
    assert moved > 20
    assert len(life.newest) == 60
    fields = [record.rec_headers for record, _ in records(tmp_path)]
    answers = {each["WARC-Record-ID"] for each in fields if each["WARC-Type"] == "response"}
    assert {each["WARC-Concurrent-To"] for each in fields if each["WARC-Type"] == "request"} == answers


def test_only_newest_copies_above_the_limit_is_an_error_that_says_so(tmp_path: Path) -> None:
    """Nothing is deleted; the text names the size, the limit and what to do."""
    life = Life(tmp_path, max_bytes=100_000)
    for batch in range(8):
        life.fetch(range(batch * 10, batch * 10 + 10))
    life.fetch(range(80, 110))
    life.repository.write([capture(url_of(number), b"same", repeats=1.0) for number in range(20)])
    with pytest.raises(RepositoryError, match="only newest copies are left: raise max_bytes or crawl fewer") as caught:
        life.repository.tidy(life.crawl.store.pages)
    assert "\n" not in str(caught.value)
    life.check_valid()


@pytest.mark.parametrize("after", [False, True])
def test_compaction_killed_before_or_after_the_store_knows_is_repeated_without_loss(
    tmp_path: Path, after: bool
) -> None:
    """The old file is still there, or its pages follow the moves."""
    life = Life(tmp_path, max_bytes=200_000)
    for batch in range(30):
        life.fetch([500 + batch, *range(9)])
    with pytest.raises(Dies):
        life.repository.tidy(dying(life.crawl, after=after))
    life.repository.close()
    life.check_valid()
    life.repository = Repository(tmp_path, rules=bounded(200_000))
    life.tidy()
    assert life.repository.bytes_on_disk() <= 200_000


def test_a_lease_that_was_out_during_compaction_may_settle_with_the_old_place(tmp_path: Path) -> None:
    """The page is read by way of the moves, its file is not taken for superseded, and the next tidy mends it."""
    life = Life(tmp_path, max_bytes=200_000)
    for batch in range(30):
        life.fetch([500 + batch, *range(9)])
    before = {url: life.crawl.copy(url) for url in life.newest}
    assert life.tidy().moved >= 15
    stale = [url for url in life.newest if life.crawl.copy(url) != before[url]]
    assert len(stale) >= 15
    life.crawl.settle(stale, [before[url] for url in stale])
    life.tidy()
    assert not {copy.file for url in stale if (copy := life.crawl.copy(url))} - set(life.files())


def test_leases_may_settle_with_the_old_place_while_it_is_being_tidied(tmp_path: Path) -> None:
    """A file goes only when the store, asked after the moves, does not name it; nor do the files it leads to."""
    life = Life(tmp_path, max_bytes=200_000)
    for batch in range(30):
        life.fetch([500 + batch, *range(9)])
    life.repository.tidy(settled_again(life.crawl))
    assert set(life.crawl.store.pages.copies()) <= set(life.files())
    before = {url: copy for url in life.newest if (copy := life.crawl.copy(url))}
    life.tidy()
    stale = [url for url in life.newest if life.crawl.copy(url) != before[url]]
    life.crawl.settle(stale, [before[url] for url in stale])
    for _ in range(20):
        life.fetch(range(9))
        life.repository.tidy(settled_again(life.crawl))
    life.check_valid()


def test_moves_that_nobody_can_name_any_more_are_forgotten(tmp_path: Path) -> None:
    """A day later every lease of the time is over."""
    life = Life(tmp_path, max_bytes=200_000)
    for batch in range(30):
        life.fetch([500 + batch, *range(9)])
    life.tidy()
    moved = list(tmp_path.glob("*.moved"))
    assert moved
    life.tidy()
    assert list(tmp_path.glob("*.moved")) == moved
    for path in moved:
        os.utime(path, (1e9, 1e9))
    life.tidy()
    assert not list(tmp_path.glob("*.moved"))


def test_a_take_down_removes_every_version_and_nothing_else(tmp_path: Path) -> None:
    """Responses, requests and revisits of the URL, in closed files and in the one being written."""
    life = Life(tmp_path)
    for _ in range(4):
        life.fetch(range(30))
    revisit = capture(url_of(7), b"same", repeats=1.0)
    life.repository.write([revisit, capture(url_of(8), b"same", repeats=1.0)])
    versions = sum(record.rec_headers["WARC-Target-URI"] == url_of(7) for record, _ in records(tmp_path))
    others = len(records(tmp_path)) - versions - len(life.files())
    url = url_of(7)
    life.crawl.store.pages.forget(site_of(url), fingerprint(url), at=99.0)
    gone = life.newest.pop(url)
    seen: list[tuple[int, int]] = []
    files = len(life.files())
    erased = life.repository.erase(
        url.__eq__, life.crawl.store.pages, progress=lambda done, total: seen.append((done, total))
    )
    assert erased == ErasureResult(records=versions, files=files)
    assert versions == 10
    assert seen == [(n, files) for n in range(1, files + 1)]
    life.check_valid()
    left = records(tmp_path)
    assert url not in {record.rec_headers["WARC-Target-URI"] for record, _ in left}
    assert gone not in {content for _, content in left}
    assert len(left) - len(life.files()) == others
    assert life.repository.erase(url.__eq__, life.crawl.store.pages) == ErasureResult()
    for number in range(30, 35):
        life.fetch([number])
    life.tidy()


def test_a_capture_that_is_not_settled_survives_a_take_down_of_others(tmp_path: Path) -> None:
    """Its lease settles with the place that it was given; until then nothing is deleted."""
    life = Life(tmp_path)
    life.fetch([1])
    late = life.repository.write([capture(url_of(900), b"late")])
    life.crawl.store.pages.forget(site_of(url_of(1)), fingerprint(url_of(1)), at=99.0)
    life.newest.clear()
    assert life.repository.erase(url_of(1).__eq__, life.crawl.store.pages).files == 1
    for _ in range(3):
        life.fetch(range(40, 80))
        life.tidy()
    life.crawl.settle([url_of(900)], late)
    life.repository.settled(late)
    life.newest[url_of(900)] = b"late"
    life.tidy()
    life.tidy()


def test_a_take_down_finds_urls_too_long_for_the_first_bytes(tmp_path: Path) -> None:
    """The header of such a record is longer than what is read of the others."""
    life = Life(tmp_path)
    long = f"{url_of(1)}?{os.urandom(6000).hex()}"
    life.repository.settled(life.repository.write([capture(long), capture(url_of(2))]))
    assert life.repository.erase(long.__eq__, life.crawl.store.pages).records == 2


def test_without_a_limit_the_folder_stays_within_a_few_times_what_is_live(tmp_path: Path) -> None:
    """One page in four never changes, so that no file can simply be deleted; it grew to five times and more."""
    life = Life(tmp_path)
    most = 0
    for batch in range(60):
        life.fetch([500 + batch % 10, *range(9)] if batch > 9 else [500 + batch, *range(9)])
        if life.repository.is_untidy():
            life.tidy()
        most = max(most, life.repository.bytes_on_disk())
    live = len(life.newest) * 1_700
    assert most <= 3 * live + 3 * FILE


def test_keep_all_without_a_limit_never_needs_tidying(tmp_path: Path) -> None:
    repository = Repository(tmp_path, rules=RepositoryTable(keep="all"), rotate_bytes=FILE)
    for number in range(100):
        repository.write([capture(url_of(number), os.urandom(1000))])
    assert not repository.is_untidy()
    repository.close()


def test_a_damaged_record_stops_neither_compaction_nor_a_take_down(tmp_path: Path) -> None:
    """Its page keeps its file; what cannot be read of a taken-down site goes, too."""
    life = Life(tmp_path, max_bytes=200_000)
    life.fetch(range(9))
    hurt = life.crawl.copy(url_of(3))
    assert hurt is not None
    path = next(tmp_path.glob("*-00000001.warc.gz"))
    data = bytearray(path.read_bytes())
    data[hurt.offset + 12] ^= 255
    path.write_bytes(data)
    del life.newest[url_of(3)]
    for batch in range(40):
        life.fetch([500 + batch % 20, *range(4, 9)])
        life.repository.tidy(life.crawl.store.pages)
    assert life.repository.bytes_on_disk() <= 200_000
    for url, body in life.newest.items():
        copy = life.crawl.copy(url)
        assert copy is not None
        assert life.repository.read(copy, url).body == body
    assert life.repository.erase(url_of(4).__eq__, life.crawl.store.pages).records > 0


@pytest.mark.parametrize("byte", range(13))
def test_a_take_down_beside_a_damaged_index_costs_no_other_page_its_copy(tmp_path: Path, byte: int) -> None:
    """The rows after a damaged one were not found, and a file is rewritten with what was found."""
    life = Life(tmp_path, rotate_bytes=10**6)
    life.fetch(range(9))
    index = next(tmp_path.glob("*.index"))
    rows = bytearray(index.read_bytes())
    rows[13 * 5 + byte] ^= 1
    index.write_bytes(rows)
    assert life.repository.erase(url_of(1).__eq__, life.crawl.store.pages).records == 2
    del life.newest[url_of(1)]
    life.check_valid()
