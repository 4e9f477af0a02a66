"""A collection of a fixed size: more important pages take the place of less important ones, and it never overflows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOUR = 3600.0
SITES = [f"http://s{number}.example" for number in range(8)]


def answer(fetch: Fetch, at: float) -> Answer:
    return (200 if fetch.kind == "page" else 404), {"content-type": "text/html"}, fetch.url.encode(), 0.1


def drive_of(most: int | None, **values: object) -> Drive:
    limits = "" if most is None else f"[collection.limits]\npages = {most}"
    values = {"min_delay": "10ms", "delay_factor": 0, "politeness": "per_ip = false", **values}
    return Drive(collection_of([SITES[0] + "/"], collection=f'scope = "any"\n{limits}', **values), answer)


def discover(drive: Drive, importances: dict[str, float]) -> None:
    """As if a fetched page had linked them."""
    links = [
        Link(url, site_of(url), fingerprint(url), importance=worth, source="x") for url, worth in importances.items()
    ]
    drive.store.queues.discover(links, at=drive.clock.now())


def held(drive: Drive) -> dict[str, float]:
    return {record.url: record.importance for _, record in drive.store.pages.records(state="crawled")}


def drawn(many: int, *, seed: int = 1, name: str = "p") -> dict[str, float]:
    """Pages of all sites whose importance is spread over ten doublings."""
    rng = random.Random(seed)
    return {f"{rng.choice(SITES)}/{name}{number}": 2.0 ** rng.uniform(-6, 4) for number in range(many)}


def test_a_full_collection_takes_in_what_is_more_important_and_lets_the_least_important_go() -> None:
    drive = drive_of(50)
    low = {url: worth / 2**12 for url, worth in drawn(80).items()}
    discover(drive, low)
    drive.run(seconds=HOUR)
    assert len(held(drive)) == 50
    high = drawn(30, seed=2, name="q")
    discover(drive, high)
    sizes = []
    for _ in range(10):
        drive.run(seconds=HOUR)
        sizes.append(len(held(drive)))
    assert max(sizes) <= 50
    assert high.keys() <= held(drive).keys()
    tombstones = [entry.url for _, entry in drive.store.changes.after(None, 999) if entry.verdict == "evicted"]
    assert len(tombstones) >= 29
    assert all(drive.store.pages.get(site_of(url), fingerprint(url)) is not None for url in tombstones)
    assert drive.metrics.get("collection/evicted") == len(tombstones)


def test_what_is_held_in_the_end_are_the_most_important_pages_to_a_class() -> None:
    """They come in any order, some after the collection was full; few are fetched that do not stay."""
    drive = drive_of(60)
    everything = drawn(300)
    for part in range(3):
        discover(drive, dict(list(everything.items())[part * 100 : part * 100 + 100]))
        drive.run(seconds=6 * HOUR)
    drive.run(seconds=12 * HOUR)
    kept = sum(held(drive).values())
    best = sum(sorted(everything.values(), reverse=True)[:60])
    assert len(held(drive)) <= 60
    assert kept >= 0.9 * best
    fetched = [url for url in drive.asked() if url in everything]
    assert len(set(fetched)) <= 150


def test_pages_of_like_importance_do_not_take_turns() -> None:
    drive = drive_of(20)
    discover(drive, dict.fromkeys(drawn(100), 1.0))
    drive.run(seconds=6 * HOUR)
    assert len(held(drive)) == 20
    assert drive.metrics.get("collection/evicted") <= 1  # the seed has no importance


def test_without_a_limit_the_collection_grows() -> None:
    drive = drive_of(None)
    discover(drive, drawn(100))
    drive.run(seconds=HOUR)
    assert len(held(drive)) == 101
