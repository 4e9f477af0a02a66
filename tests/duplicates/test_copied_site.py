"""Somebody copies a seed's pages to take its place: what the collection holds in the end, and what its readers hear."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.core.colliding_texts import colliding
from tests.duplicates.copied_sites import DAY, A, Ants, B, C, Town, page, text
from webfountain.core.sketch import sketch, sketch_resemblance

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

PAGES = 60
HEADS = [f"{A}/{number}" for number in range(6)]
DETECTED = '[duplicates]\ndetect = true\n[changes]\nkeep = "400d"\n'


def good(number: int) -> str:
    """A page of the site that is copied, in short chains."""
    return page(text(number, words=60), f"{A}/{number + 6}" if number + 6 < PAGES else A)


def web(share: float, *, canonical: bool) -> dict[str, str]:
    """The good site, and one that has copies of a share of its pages and something else at its other paths."""
    pages = {f"{A}/": page(text(10_000), *HEADS)} | {f"{A}/{number}": good(number) for number in range(PAGES)}
    copied = round(share * PAGES)
    for number in range(PAGES):
        url = f"{B}/{number}"
        body = text(number if number < copied else 20_000 + number, words=60)
        pages[url] = page(body, canonical=url if canonical else None)
    pages[f"{B}/"] = page(text(20_000), *(f"{B}/{number}" for number in range(PAGES)))
    pages[f"{C}/"] = page(text(30_000), f"{B}/")
    return pages


class CopiedTown(Town):
    """Each site at an address of its own; where the copies come first the good site is slow."""

    def __init__(self, folder: Path, pages: dict[str, str], *, is_first: bool) -> None:
        self.is_first = is_first
        super().__init__(folder, pages, seeds=(A, C) if is_first else (A,), rest=DETECTED)
        hosts = [site.partition("://")[2] for site in (A, B, C)]
        self.drive.addresses |= {host: [f"203.0.113.{number}"] for number, host in enumerate(hosts, 1)}

    def seconds(self, fetch: Fetch) -> float:
        return 20.0 if self.is_first and fetch.site == A else 0.1


def held(town: Town, site: str) -> set[str]:
    return {
        record.url
        for name, record in town.drive.store.pages.records()
        if name == site and record.state == "crawled" and record.duplicate_of is None
    }


def as_consumers_hold(town: Town) -> dict[str, str | None]:
    """URL -> digest of what somebody holds who followed the change log."""
    copies: dict[str, str | None] = {}
    for _, entry in town.drive.store.changes.after(None, 100_000):
        copies[entry.url] = entry.digest
    return {url: digest for url, digest in copies.items() if digest is not None}


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("canonical", [False, True])
def test_who_copies_a_seeds_pages_does_not_take_its_place(
    tmp_path: Path, share: float, is_first: bool, canonical: bool
) -> None:
    """Also where the copies are fetched before, and name themselves canonical; the change log and the states agree."""
    town = CopiedTown(tmp_path, web(share, canonical=canonical), is_first=is_first)
    if not is_first:
        town.drive.run(seconds=3600)
        town.pages[f"{A}/"] = page(text(10_001), *HEADS, f"{B}/")
    town.drive.run(seconds=40 * DAY)
    mine = {url for url in town.pages if url.startswith(A)}
    stolen = {f"{A}/{number}" for number in range(round(share * PAGES))}
    assert held(town, A) == mine, "all of the seed's pages"
    assert not {url.replace(B, A) for url in held(town, B)} & stolen, "and none of their copies"
    states = {record.url: record for _, record in town.drive.store.pages.records()}
    all_held = {url: states[url].digest for site in (A, B, C) for url in held(town, site)}
    assert as_consumers_hold(town) == all_held
    town.drive.frontier.close()


def test_a_displaced_copy_is_reported_once_and_does_not_come_back(tmp_path: Path) -> None:
    """The attacker's pages, first held, end as duplicates, and no two pages take turns over many visits."""
    town = CopiedTown(tmp_path, web(1.0, canonical=False), is_first=True)
    town.drive.run(seconds=200 * DAY)
    reported = Counter((entry.url, entry.verdict) for _, entry in town.drive.store.changes.after(None, 100_000))
    assert max(reported.values()) == 1, reported.most_common(3)
    assert reported[f"{B}/5", "duplicate"] == 1
    assert reported[f"{A}/5", "new"] == 1
    assert not any(verdict == "returned" for _, verdict in reported)
    assert town.drive.metrics.get("duplicates/outranked") >= PAGES // 2
    town.drive.frontier.close()


@pytest.mark.parametrize(("number", "is_first"), [(1, True), (2, False)])
def test_a_page_whose_sketch_is_that_of_another_is_none_of_its_duplicates(
    tmp_path: Path, number: int, is_first: bool
) -> None:
    """Across sites the texts decide, also where the sketches are equal and their key is known."""
    victim = text(number)
    forged = colliding(victim)
    drawn = [np.frombuffer(sketch(each) or b"", dtype=np.uint8)[None] for each in (victim, forged)]
    assert sketch_resemblance(*drawn)[0] >= 0.96, "no text would have been compared"
    with closing(Ants(tmp_path)) as ants:
        pages = [(f"{B}/", forged), (f"{A}/", victim)]
        for url, body in pages if is_first else reversed(pages):
            assert ants.fetch(0, url, body).duplicate_of is None
        assert ants.fetch(0, f"{C}/", text(number, changed=1)).duplicate_of == f"{A}/"
