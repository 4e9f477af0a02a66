"""Check a store, its copies and its derived files: read every entry, and compare the counts.

A check changes nothing in the store. `mend_copies` makes a page due if its copy is lost. If a damaged store lost pages,
`discover_copies` adds those pages that still have a copy. Derived files (link log, scores, indexes of duplicates) need
no backup, because the crawl can create them again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.errors import RepositoryError
from webfountain.records import STATES, Copy, Link, Move
from webfountain.report.store_reading import every_site
from webfountain.repository.folder import Folder
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webfountain.records import PageRecord
    from webfountain.repository.index import IndexRow
    from webfountain.repository.repository import Pages
    from webfountain.store.contract import FrontierStore

__all__ = ["DerivedFiles", "DerivedReport", "LostCopy", "Wholeness", "discover_copies", "examine_store", "mend_copies"]

NOWHERE: Final = Copy(file=0, offset=0, length=0)
"""Location that marks a copy as lost, so that the crawl fetches the whole page again."""
_AT_ONCE: Final = 1000


class LostCopy(msgspec.Struct, frozen=True):
    """A page whose copy cannot be read, and the reason."""

    url: str
    copy: Copy
    why: str


class Wholeness(msgspec.Struct, frozen=True):
    """Result of a check of a store and its copies.

    - `counts`: each wrong count as (what, counted, in the store).
    - `elsewhere`: ant -> its folder on another machine ("" if unknown) and the number of copies there, which were not
      read.
    - `is_compared`: False if counts were not compared, because ants were changing them.
    """

    pages: int
    sites: int
    copies: int
    counts: list[tuple[str, int, int]]
    lost: list[LostCopy]
    elsewhere: dict[int, tuple[str, int]] = {}
    is_compared: bool = True

    @property
    def is_whole(self) -> bool:
        """Return whether the check found neither wrong counts nor lost copies."""
        return not self.counts and not self.lost


def examine_store(
    store: FrontierStore,
    repository: Pages | None,
    *,
    progress: Callable[[int], None],
    places: Mapping[int, str] | None = None,
    beside: bool = False,
) -> Wholeness:
    """Read every page record and its copy. Call `progress` with the number of pages read so far.

    Parameters
    ----------
    places : folder of copies by ant, if there are several ants
    beside : whether ants are crawling; counts are then not compared

    Raises
    ------
    StoreError
        at a damaged block, because nothing after it can be read.
    """
    states: Counter[tuple[str, str]] = Counter()
    buckets: Counter[int] = Counter()
    files: Counter[tuple[int, int]] = Counter()
    lost: list[LostCopy] = []
    elsewhere: Counter[int] = Counter()
    for done, (site, record) in enumerate(store.pages.records(), start=1):
        states[site, record.state] += 1
        if record.state == "crawled":
            buckets[record.bucket] += 1
        if record.copy is not None:
            files[record.copy.repository, record.copy.file] += 1
            if repository is None:
                pass
            elif record.copy.repository and not repository.reaches(record.copy.repository):
                elsewhere[record.copy.repository] += 1
            elif (found := _lost_copy(store, repository, site, record)) is not None:
                lost.append(found)
        if done % 1000 == 0:
            progress(done)
    counts = [] if beside else list(_wrong_counts(store, states, buckets, files, places or {}))
    return Wholeness(
        sum(states.values()),
        len({site for site, _ in states}),
        sum(files.values()),
        counts,
        lost,
        {number: ((places or {}).get(number, ""), many) for number, many in sorted(elsewhere.items())},
        not beside,
    )


def mend_copies(store: FrontierStore, lost: Iterable[LostCopy], *, at: float) -> int:
    """For each lost copy, make its page due. Return the number of pages made due."""
    many = 0
    for each in lost:
        site, key = site_of(each.url), fingerprint(each.url)
        store.pages.relocate([Move(site, key, old=each.copy, new=NOWHERE)])
        store.queues.advance(site, [key], due=at, at=at)
        many += 1
    return many


def _lost_copy(store: FrontierStore, repository: Pages, site: str, record: PageRecord) -> LostCopy | None:
    """Return the copy of a page as a `LostCopy` if the copy cannot be read, else None. If a running crawl has moved the
    copy, read the copy at its new location."""
    now: PageRecord | None = record
    while now is not None and now.copy is not None:
        why = _trouble(repository, now, now.copy)
        if why is None:
            return None
        before, now = now, store.pages.get(site, fingerprint(record.url))
        if now is not None and now.copy == before.copy:
            assert now.copy is not None
            return LostCopy(now.url, now.copy, why)
    return None


def _trouble(repository: Pages, record: PageRecord, copy: Copy) -> str | None:
    """Return what is wrong with a page's copy, or None if nothing is wrong."""
    try:
        body = repository.read(copy, record.url).body
    except RepositoryError as error:
        return str(error)
    # After a repair of the store, a page has no copy until it is fetched again.
    if record.digest is not None and hashlib.sha1(body, usedforsecurity=False).hexdigest() != record.digest:
        return "its digest differs from the digest in the page's record"
    return None


def _wrong_counts(
    store: FrontierStore,
    states: Counter[tuple[str, str]],
    buckets: Counter[int],
    files: Counter[tuple[int, int]],
    places: Iterable[int],
) -> Iterable[tuple[str, int, int]]:
    counted = store.census.statistics().pages
    for state in STATES:
        there = sum(many for (_, each), many in states.items() if each == state)
        if counted[state] != there:
            yield f"{state} pages", counted[state], there
    for site in every_site(store):
        for state, many in zip(STATES, site.pages, strict=True):
            if many != states[site.site, state]:
                yield f"{state} pages of {site.site}", many, states[site.site, state]
    in_buckets = {bucket: row.pages for bucket, row in store.census.buckets().items()}
    for bucket in sorted(in_buckets.keys() | buckets.keys()):
        if in_buckets.get(bucket, 0) != buckets[bucket]:
            yield f"pages of bucket {bucket}", in_buckets.get(bucket, 0), buckets[bucket]
    repositories = {0, *places, *(repository for repository, _ in files)}
    in_files = {
        (number, file): many for number in repositories for file, many in store.pages.copies(repository=number).items()
    }
    for number, file in sorted(in_files.keys() | files.keys()):
        counted_there, there = in_files.get((number, file), 0), files[number, file]
        if counted_there != there:
            of = f" of ant {number}" if number else ""
            yield f"copies in WARC file {file}{of}", counted_there, there


def discover_copies(store: FrontierStore, directory: Path, *, at: float) -> int:
    """Add to a rebuilt store the pages that have a copy in a folder. Return the number of added pages."""
    if not directory.is_dir():
        return 0
    links, found = _links(Folder(directory)), 0
    while some := list(islice(links, _AT_ONCE)):
        found += store.queues.discover(some, at=at).new
    return found


def _links(folder: Folder) -> Iterator[Link]:
    try:
        for number in sorted(folder.files()):
            for row in folder.rows(number):
                if row.kind == "response" and (link := _link(folder, number, row)) is not None:
                    yield link
    finally:
        folder.let_go()


def _link(folder: Folder, number: int, row: IndexRow) -> Link | None:
    try:
        record = folder.head(number, row)
    except RepositoryError:
        return None
    page = record.page
    return None if page is None else Link(record.url, page[0], page[1])


class DerivedReport(NamedTuple):
    """Result of a check of derived files: the kinds that exist, and one line for each damaged file."""

    present: tuple[str, ...]
    damaged: tuple[str, ...]


class DerivedFiles:
    """Checks and repairs the derived files of a crawl.

    Parameters
    ----------
    home : folder of the scores: the store's folder or, if the store is on a server, the repository
    links : the link log, a folder or an fsspec URL
    repository : the folder of copies, with the folders of several ants in it; None: there is none
    """

    def __init__(self, home: Path, links: str, repository: Path | None) -> None:
        self._home = home
        self._links = links
        self._repository = repository

    def examine(self, *, mend_at: float | None = None) -> DerivedReport:
        """Read all derived files. With `mend_at` (UTC seconds), also set damaged files aside or remove them; then no
        crawl may be running. Raise RepositoryError or OSError if the disk reports an error.
        """
        from webfountain.duplicates.index_check import damaged_index, mend_index  # noqa: PLC0415  numpy, 0.1 s
        from webfountain.ranking.link_journal import damaged_journals  # noqa: PLC0415
        from webfountain.ranking.scores import damaged_scores, mend_scores  # noqa: PLC0415

        present: list[str] = []
        damaged: list[str] = []
        journals = self._home / "link-journal"
        if "://" in self._links or Path(self._links).is_dir() or (self._home / "scores" / "EPOCH").exists():
            present.append("link log")
            damaged += _damaged_log(self._links) if mend_at is None else _mend_log(self._links, at=mend_at)
        damaged += damaged_journals(journals) if mend_at is None else _mend_journals(self._links, journals, at=mend_at)
        for scores in (self._home / "scores", self._home / "scores" / "sites"):
            if (scores / "EPOCH").exists():
                present += ["scores"] if scores.name == "scores" else []
                damaged += damaged_scores(scores) if mend_at is None else mend_scores(scores)
        for index in self._indices():
            present += [] if "duplicates" in present else ["duplicates"]
            damaged += damaged_index(index) if mend_at is None else mend_index(index)
        return DerivedReport(tuple(present), tuple(damaged))

    def _indices(self) -> Iterator[Path]:
        if self._repository is not None:
            for folder in (self._repository, *sorted(self._repository.glob("ant-*"))):
                if (folder / "duplicates").is_dir():
                    yield folder / "duplicates"


def _damaged_log(links: str) -> list[str]:
    from webfountain.ranking.log_completeness import damaged_files  # noqa: PLC0415  pyarrow, where there is a log

    return _missing_log(links) or damaged_files(links)


def _mend_log(links: str, *, at: float) -> list[str]:
    from webfountain.ranking.link_files import LogFiles  # noqa: PLC0415
    from webfountain.ranking.log_completeness import incomplete_until, mend  # noqa: PLC0415

    if missing := _missing_log(links):
        incomplete_until(LogFiles(links), at)
    return missing or mend(links, at=at)


def _missing_log(links: str) -> list[str]:
    """Return one line about a missing link log, or an empty list if the folder of the log exists."""
    return [] if "://" in links or Path(links).is_dir() else [f"{links}: damaged: it is missing, but was ranked"]


def _mend_journals(links: str, folder: Path, *, at: float) -> list[str]:
    from webfountain.ranking.link_journal import mend_journals  # noqa: PLC0415

    mended = mend_journals(folder)
    if mended:
        from webfountain.ranking.link_files import LogFiles  # noqa: PLC0415
        from webfountain.ranking.log_completeness import incomplete_until  # noqa: PLC0415

        incomplete_until(LogFiles(links), at)
    return mended
