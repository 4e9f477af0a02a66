"""Mirrors in a crawl without network: what is refused unasked, and that nothing else of a mirror stays behind."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists

from tests.duplicates.copied_sites import DAY, A, B, Town, page, text
from webfountain.duplicates.detector import MIRROR
from webfountain.duplicates.mirrors import SAMPLED, Mirrors
from webfountain.records import Lease, LeaseId, PageRecord
from webfountain.store.answers import LeaseBatch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.frontier.drive import Answer
    from webfountain.records import Fetch


class MirroredTown(Town):
    """A site of 150 pages, and a mirror of it with 40 pages of its own that stand in its sitemap last.

    `slow` of the sites answer after seconds. Of the pages that both have the `other` last ones are not the same.
    """

    def __init__(
        self, folder: Path, *, slow: tuple[str, ...] = (), common: int = 150, own: int = 40, other: int = 0
    ) -> None:
        names = [f"/{number}" for number in range(common)]
        self.slow = slow
        self.own = [f"{B}/own-{number}" for number in range(own)]
        pages = {site + name: page(text(place, words=60)) for site in (A, B) for place, name in enumerate(names)}
        self.other = [f"{B}/{number}" for number in range(common - other, common)]
        pages |= {url: page(text(2000 + place, words=60)) for place, url in enumerate(self.other)}
        pages |= {url: page(text(1000 + place, words=60)) for place, url in enumerate(self.own)}
        pages[f"{A}/"] = page(text(99_999), *(A + name for name in names))
        pages[f"{B}/"] = page(text(99_998))
        pages[f"{A}/{common - 1}"] = page(text(common - 1, words=60), f"{B}/")
        self.listed = [f"{B}/", *(B + name for name in names), *self.own]
        super().__init__(folder, pages, seeds=(A,))

    def answer(self, fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots" and fetch.site == B:
            return 200, {"content-type": "text/plain"}, f"Sitemap: {B}/sitemap.xml\n".encode(), self.seconds(fetch)
        if fetch.kind == "sitemap":
            rows = "".join(f"<url><loc>{url}</loc></url>" for url in self.listed)
            body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'
            return 200, {"content-type": "application/xml"}, body.encode(), self.seconds(fetch)
        return super().answer(fetch, at)

    def seconds(self, fetch: Fetch) -> float:
        return 5.0 if fetch.site in self.slow else 0.1


@pytest.mark.parametrize("slow", [(), (B,)])
def test_a_mirrors_own_pages_are_all_crawled(tmp_path: Path, slow: tuple[str, ...]) -> None:
    """A deal of which the worker keeps all back is none of which the store has no more."""
    town = MirroredTown(tmp_path, slow=slow)
    town.drive.run(seconds=6 * 3600)
    asked = set(town.asked(B))
    town.drive.frontier.close()
    assert asked >= set(town.own)
    assert len(asked) < 120, "most pages that the original has are not asked for"


def test_a_site_that_was_taken_for_a_mirror_is_crawled_whole_once_samples_differ(tmp_path: Path) -> None:
    """Half of its pages are those of the other site, and at the other paths both have something else."""
    town = MirroredTown(tmp_path, other=75, own=0)
    town.drive.run(seconds=6 * 3600)
    assert town.drive.metrics.get("duplicates/unmirrored") == 1
    assert town.drive.metrics.get("duplicates/mirrored") > 0
    assert all(town.record(url).state == "crawled" for url in town.other)
    assert {record.error for site, record in town.drive.store.pages.records() if site == B} == {None}
    town.drive.frontier.close()


def test_the_pages_of_a_true_mirror_are_refused_but_for_samples(tmp_path: Path) -> None:
    """Of what would be refused one in ten is asked; each page is drawn anew when it comes due."""
    town = MirroredTown(tmp_path, common=300, own=0)
    town.drive.run(seconds=6 * 3600)
    asked = {url for url in town.asked(B) if url != f"{B}/"}
    refused = {record.url for site, record in town.drive.store.pages.records() if site == B and record.error == MIRROR}
    assert len(refused) > 200
    assert len(asked) < 300 / SAMPLED + 60
    assert not town.drive.metrics.get("duplicates/unmirrored")
    town.drive.run(seconds=31 * DAY)
    again = set(town.asked(B)) & refused
    assert 0 < len(again) < 60
    town.drive.frontier.close()


@given(seed=integers(0, 2**63), differ=floats(0.3, 1.0))
def test_a_verdict_is_taken_back_where_samples_differ(seed: int, differ: float) -> None:
    rng, mirrors = random.Random(seed), Mirrors(key=seed)
    for _ in range(20):
        mirrors.count(B, A)
    assert mirrors.original_of(B) == A
    ended = [mirrors.count_sample(B, A, repeats=rng.random() > differ) for _ in range(60)]
    assert sum(ended) == 1
    assert mirrors.original_of(B) is None
    assert mirrors.is_refuted(B, A)


@given(seed=integers(0, 2**63))
def test_one_page_that_differs_takes_no_verdict_back(seed: int) -> None:
    mirrors = Mirrors(key=seed)
    for _ in range(20):
        mirrors.count(B, A)
    assert not any(mirrors.count_sample(B, A, repeats=number % 30 > 0) for number in range(300))
    assert mirrors.original_of(B) == A


class BusyTown(MirroredTown):
    """The two sites beside a dozen others, each at an address of its own, and each answer at another speed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rng = random.Random(seed)
        super().__init__(folder)
        hosts = [f"http://n{number}.example" for number in range(12)]
        for number, host in enumerate(hosts):
            links = [f"{host}/{other}" for other in range(1, 30)]
            self.pages |= {
                f"{host}/{name or ''}": page(text(50_000 + 100 * number + name), *links) for name in range(30)
            }
        self.pages[f"{A}/"] += "".join(f'<a href="{host}/"></a>' for host in hosts)
        for number, site in enumerate([A, B, *hosts]):
            self.drive.addresses[site.partition("://")[2]] = [f"203.0.113.{20 + number}"]

    def seconds(self, fetch: Fetch) -> float:
        return self._rng.choice([0.1, 0.1, 3.0, 20.0])


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 21), marks=pytest.mark.soak)])
def test_a_mirrors_own_pages_are_all_crawled_beside_slow_and_busy_neighbours(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        town = BusyTown(tmp_path / str(seed), seed)
        town.drive.run(seconds=24 * 3600)
        asked = set(town.asked(B))
        assert asked >= set(town.own)
        assert len(asked) < 130
        town.drive.frontier.close()


@given(counts=lists(integers(0, 3), min_size=3, max_size=3))
def test_a_refill_is_empty_only_if_the_store_had_nothing(counts: list[int]) -> None:
    """Also where every lease of it was kept back."""
    lease = Lease(LeaseId(A, 1, 1), b"12345678", PageRecord(f"{A}/"))
    never, recrawl, withheld = counts
    assert LeaseBatch(A, [], [lease] * never, [lease] * recrawl, [], withheld=withheld).is_empty is not any(counts)
