"""Whether a store and its repository are whole: every entry read, counts compared with what is there, every copy read.

What is found is told and not changed; `mend_copies` has pages whose copy is gone fetched again. A store that is
crawled meanwhile can be looked at, but its counts move, so they are compared within what it did meanwhile.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import RepositoryError
from webfountain.records import STATES, Copy, Move
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.records import PageRecord
    from webfountain.repository.pages import Pages
    from webfountain.store.contract import FrontierStore

__all__ = ["NOWHERE", "LostCopy", "Wholeness", "look_over", "mend_copies"]

NOWHERE: Final = Copy(file=0, offset=0, length=0)
"""The place of a copy that is gone: no WARC file has the number 0, so the next fetch is unconditional."""
_SITES_AT_ONCE: Final = 1000


class LostCopy(msgspec.Struct, frozen=True):
    """A page whose copy cannot be read, and why."""

    url: str
    copy: Copy
    why: str


class Wholeness(msgspec.Struct, frozen=True):
    """What was found. `counts` tells each count that is wrong: (what, counted, there)."""

    pages: int
    sites: int
    copies: int
    counts: list[tuple[str, int, int]]
    lost: list[LostCopy]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is to be mended."""
        return not self.counts and not self.lost


def look_over(store: FrontierStore, repository: Pages | None, *, progress: Callable[[int], None]) -> Wholeness:
    """Read every page record, and the copy that it names; `progress` is told how many pages were read.

    Raises
    ------
    StoreError
        at a damaged block: what lies behind it cannot be told.
    """
    states: Counter[tuple[str, str]] = Counter()
    buckets: Counter[int] = Counter()
    files: Counter[int] = Counter()
    lost: list[LostCopy] = []
    for done, (site, record) in enumerate(store.pages(), start=1):
        states[site, record.state] += 1
        if record.state == "crawled":
            buckets[record.bucket] += 1
        if record.copy is not None:
            files[record.copy.file] += 1
            why = None if repository is None else _trouble(repository, record, record.copy)
            if why is not None:
                lost.append(LostCopy(record.url, record.copy, why))
        if done % 1000 == 0:
            progress(done)
    counts = list(_wrong_counts(store, states, buckets, files))
    return Wholeness(sum(states.values()), len({site for site, _ in states}), sum(files.values()), counts, lost)


def mend_copies(store: FrontierStore, lost: Iterable[LostCopy], *, at: float) -> int:
    """Have pages fetched again whose copy is gone; how many. Those that are gone or failed themselves come in turn."""
    many = 0
    for each in lost:
        site, key = site_of(each.url), fingerprint(each.url)
        store.relocate([Move(site, key, old=each.copy, new=NOWHERE)])
        store.advance(site, [key], due=at, at=at)
        many += 1
    return many


def _trouble(repository: Pages, record: PageRecord, copy: Copy) -> str | None:
    """What is wrong with a page's copy."""
    try:
        body = repository.read(copy, record.url).body
    except RepositoryError as error:
        return str(error)
    if hashlib.sha1(body, usedforsecurity=False).hexdigest() != record.digest:
        return "its digest is not that of the page's record"
    return None


def _wrong_counts(
    store: FrontierStore, states: Counter[tuple[str, str]], buckets: Counter[int], files: Counter[int]
) -> Iterable[tuple[str, int, int]]:
    counted = store.statistics().pages
    for state in STATES:
        there = sum(many for (_, each), many in states.items() if each == state)
        if counted[state] != there:
            yield f"{state} pages", counted[state], there
    name = ""
    while found := store.sites(name, _SITES_AT_ONCE):
        name = found[-1].site
        for site in found:
            for state, many in zip(STATES, site.pages, strict=True):
                if many != states[site.site, state]:
                    yield f"{state} pages of {site.site}", many, states[site.site, state]
    in_buckets = {bucket: row.pages for bucket, row in store.census().items()}
    for bucket in sorted(in_buckets.keys() | buckets.keys()):
        if in_buckets.get(bucket, 0) != buckets[bucket]:
            yield f"pages of bucket {bucket}", in_buckets.get(bucket, 0), buckets[bucket]
    in_files = store.copies()
    for file in sorted(in_files.keys() | files.keys()):
        if in_files.get(file, 0) != files[file]:
            yield f"copies in WARC file {file}", in_files.get(file, 0), files[file]
