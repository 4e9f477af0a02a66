"""The frontier that a crawl is built with: what it reports while its seeds are added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.config import FountainConfig
from webfountain.crawl.builder import build_own
from webfountain.frontier.progress import published_limit
from webfountain.metrics import Metrics
from webfountain.policy.collection import Collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class CollectionInSteps(Collection):
    """A collection that calls a function before each of its seeds is read."""

    before_seed: Callable[[], None]

    def seed_lines(self) -> Iterator[tuple[str, str | None]]:
        for line in super().seed_lines():
            self.before_seed()
            yield line


def test_while_seeds_are_added_the_display_and_status_say_so_and_count_them(tmp_path: Path) -> None:
    """For minutes, a crawl with many seeds said that it knew no page and that nothing was due."""
    file, seeds = tmp_path / "policy.toml", tmp_path / "seeds.txt"
    file.write_text(
        '[collection]\nname = "one"\nseeds_file = "seeds.txt"\n[politeness]\nuser_agent = "one/1 (+https://a.example)"'
    )
    seeds.write_text("".join(f"http://one.example/{number}\n" for number in range(2500)))
    store = f"rocksdb://{tmp_path}/store"
    built = build_own(FountainConfig(store=store, repository=str(tmp_path / "copies")), str(file), Metrics())
    progress, board = built.frontier.progress, built.frontier.worker.on_store(lambda opened: opened.board)
    seen = set()

    def report() -> None:
        published = published_limit(board)
        words = None if published is None else published.words
        seen.add((progress.limit(built.clock.now()), words, sum(progress.stored.pages.values())))

    collection = CollectionInSteps(built.collection.path, built.collection.tables, text=built.collection.text)
    collection.before_seed = report
    built.seeds(collection)
    assert seen == {("seeds are being added",) * 2 + (many,) for many in (0, 1000, 2000)}
    assert progress.stored.pages["never-crawled"] == 2500
    assert progress.limit(built.clock.now()) == "nothing is due"
    built.frontier.close()
