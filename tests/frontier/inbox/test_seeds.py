"""Loading seeds: in batches, each once, none dropped in silence."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from tests.policy.collections import collection_of
from tests.store.local_claims import LocalClaims
from webfountain.errors import PolicyError
from webfountain.frontier.inbox.seeds import SEED_BATCH, SeedReport, load_seeds, load_seeds_once
from webfountain.policy.judge import Judge
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.records import Link


class Ledger:
    """An eliminator's `discover`, that remembers the keys and the size of each batch."""

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.batches: list[int] = []
        self.last: Link | None = None

    def discover(self, links: Sequence[Link], *, at: float) -> list[Link]:
        new = [link for link in links if link.key not in self.keys]
        self.keys |= {link.key for link in new}
        self.batches.append(len(links))
        self.last = links[-1]
        return new


def from_file(folder: Path, lines: Sequence[str], *, tables: str = "") -> Collection:
    (folder / "seeds.txt").write_text("\n".join(lines), "utf-8")
    return collection_of(tables, seeds=(), collection='seeds_file = "seeds.txt"', path=folder / "mine.toml")


def test_seeds_are_links_from_outside_at_depth_0() -> None:
    ledger, collection = Ledger(), collection_of(seeds=("https://b.example/x#y",))
    loaded = load_seeds(collection, Judge(collection, year=2026), ledger.discover, at=1.0)
    link = ledger.last
    assert link is not None
    assert (link.url, link.site, link.depth, link.source) == ("https://b.example/x", "https://b.example", 0, "")
    assert link.key == fingerprint("https://b.example/x")
    assert (loaded.new, loaded.known, loaded.refused, loaded.read) == (1, 0, {}, 1)


def test_a_second_load_finds_them_known() -> None:
    ledger, collection = Ledger(), collection_of(seeds=("https://b.example/", "https://c.example/"))
    judge = Judge(collection, year=2026)
    load_seeds(collection, judge, ledger.discover, at=1.0)
    again = load_seeds(collection, judge, ledger.discover, at=2.0)
    assert (again.new, again.known) == (0, 2)


def test_a_seed_that_the_policy_denies_is_named() -> None:
    collection = collection_of(
        "[policies.default]\ndeny = ['zip$']\n",
        seeds=("https://b.example/", "https://b.example/a.zip", "https://b.example/b.zip"),
    )
    loaded = load_seeds(collection, Judge(collection, year=2026), Ledger().discover, at=1.0)
    assert loaded.refused == {"denied": (2, "https://b.example/a.zip")}
    assert (loaded.new, loaded.read) == (1, 3)


def test_a_file_of_many_seeds_is_handed_over_in_batches_and_never_held(tmp_path: Path) -> None:
    lines = [f"https://site{n}.example/" for n in range(8000)]
    collection = from_file(tmp_path, lines)
    judge, sizes = Judge(collection, year=2026), []

    def discover(links: Sequence[Link], *, at: float) -> Sequence[Link]:
        sizes.append(len(links))
        return links

    tracemalloc.start()
    loaded = load_seeds(collection, judge, discover, at=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.new == sum(sizes) == len(lines)
    assert max(sizes) == SEED_BATCH
    assert peak < 2_000_000  # all 8,000 links would take more


def test_a_line_that_went_wrong_since_the_policy_file_was_read_is_named(tmp_path: Path) -> None:
    collection = from_file(tmp_path, ["https://a.example/"])
    judge = Judge(collection, year=2026)
    (tmp_path / "seeds.txt").write_text("https://a.example/\n\nnonsense\n", "utf-8")
    with pytest.raises(PolicyError, match=r"seeds\.txt:3: 'nonsense'"):
        load_seeds(collection, judge, Ledger().discover, at=1.0)


class Starter:
    """Ants that start together, one after the other, on a clock that moves while one waits."""

    def __init__(self, collection: Collection) -> None:
        self.now, self.rests, self.stopping = 1000.0, 0, False
        self.ledger, self.claims, self.collection = Ledger(), LocalClaims(), collection

    def rest(self) -> bool:
        self.now, self.rests = self.now + 5.0, self.rests + 1
        return not self.stopping

    def start(self, owner: str) -> SeedReport:
        judge, discover = Judge(self.collection, year=2026), self.ledger.discover
        return load_seeds_once(
            self.collection, judge, discover, self.claims, owner=owner, now=lambda: self.now, rest=self.rest
        )


def test_of_ants_that_start_together_one_loads_the_seeds_and_an_hour_later_another(tmp_path: Path) -> None:
    lines = [f"https://site{n}.example/" for n in range(2500)]
    ants = Starter(from_file(tmp_path, lines))
    assert [ants.start(f"ant{n}").read for n in range(3)] == [2500, 0, 0]
    ants.now += 3600.0
    assert ants.start("late").known == 2500
    (tmp_path / "seeds.txt").write_text("\n".join([*lines, "https://new.example/"]), "utf-8")
    assert ants.start("later").new == 1, "another list"
    assert ants.rests == 0


def test_seeds_of_a_loader_that_died_are_loaded_by_one_that_waits_for_it(tmp_path: Path) -> None:
    ants = Starter(from_file(tmp_path, [f"https://site{n}.example/" for n in range(2500)]))
    plain = ants.ledger.discover

    def die(links: Sequence[Link], *, at: float) -> list[Link]:
        if ants.ledger.batches:
            raise KeyboardInterrupt
        return plain(links, at=at)

    ants.ledger.discover = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        ants.start("dead")
    ants.ledger.discover = plain  # type: ignore[method-assign]
    heir = ants.start("heir")
    assert (heir.new, heir.known) == (1500, 1000)
    assert ants.rests > 0


def test_an_ant_that_ends_waits_for_no_seeds(tmp_path: Path) -> None:
    ants = Starter(from_file(tmp_path, ["https://a.example/"]))
    ants.start("first")
    [name] = [claim.name for claim in ants.claims.claims("seeds")]
    ants.now += 100.0
    ants.claims.claim([name], owner="other", until=9e9, at=ants.now)
    ants.stopping = True
    assert ants.start("second").read == 0
    assert ants.rests == 1
