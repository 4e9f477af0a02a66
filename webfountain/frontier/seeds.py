"""Seeds enter the store: the first links of a crawl, and of every later start that finds new ones in the file.

Place in the walk: its beginning. A seeds file is read line by line and handed over in batches, so 100,000 sites
take no memory. A seed that the policy itself refuses is not dropped in silence: the result names it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge, Reason
    from webfountain.records import Discovered

__all__ = ["SEED_BATCH", "Discover", "SeedsLoaded", "load_seeds", "seed_links"]

SEED_BATCH: Final = 1000


class Discover(Protocol):
    """Makes links known: the duplicate URL eliminator, or the store itself."""

    def __call__(self, links: Sequence[Link], *, at: float) -> Discovered:
        """How many were new, how many known."""
        ...


class SeedsLoaded(msgspec.Struct, frozen=True):
    """What became of the seeds; `refused` has the number of each reason, with the first URL for the log."""

    new: int
    known: int
    refused: dict[Reason, tuple[int, str]]

    @property
    def read(self) -> int:
        """All that the policy file and the seeds file named."""
        return self.new + self.known + sum(many for many, _ in self.refused.values())


def load_seeds(collection: Collection, judge: Judge, discover: Discover, *, at: float) -> SeedsLoaded:
    """Make every seed known that the collection's own rules do not refuse.

    Raises
    ------
    PolicyError
        at a line of the seeds file that is no URL (it changed since the policy file was read); seeds before it
        are known then, and a second call repeats nothing.
    """
    new = known = 0
    refused: dict[Reason, tuple[int, str]] = {}
    links = seed_links(collection, judge, refused)
    while batch := list(itertools.islice(links, SEED_BATCH)):
        found = discover(batch, at=at)
        new += found.new
        known += found.known
    return SeedsLoaded(new, known, refused)


def seed_links(collection: Collection, judge: Judge, refused: dict[Reason, tuple[int, str]]) -> Iterator[Link]:
    """The seeds as links, in order; those refused are entered in `refused` as the iteration meets them."""
    seeds = collection.seeds_with_policies()
    while batch := list(itertools.islice(seeds, SEED_BATCH)):
        for policy, named in itertools.groupby(batch, key=lambda seed: seed[1]):
            urls = [url for url, _ in named]
            for url, verdict in zip(urls, judge.judge(urls, judge.seed(policy)), strict=True):
                if verdict.reason is None:
                    yield Link(
                        url,
                        site_of(url),
                        fingerprint(url),
                        policy=verdict.policy,
                        importance=judge.importance(verdict),
                        trust=verdict.trust,
                    )
                else:
                    many, first = refused.get(verdict.reason, (0, url))
                    refused[verdict.reason] = (many + 1, first)
