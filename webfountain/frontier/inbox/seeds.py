"""Add URLs from outside the crawl to the store: seeds, and links that a caller provides.

Seeds are loaded at the first start, and when the policy file or the seeds file has changed. The seeds file is read in
batches of lines, so that a large file takes little memory. The judge refuses a URL or chooses its policy. Known URLs
are dropped, and new URLs are stored.
"""

from __future__ import annotations

import contextlib
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import xxhash

from webfountain.errors import UrlError
from webfountain.policy.judge import Origin
from webfountain.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.duplicates.url_dedup import DuplicateEliminator
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.policy.url_rules import Reason
    from webfountain.records import Link, PageRecord
    from webfountain.store.answers import Claim
    from webfountain.store.shared_contract import Claims

__all__ = ["SEED_BATCH", "Entrance", "LinkSink", "SeedReport", "load_seeds", "load_seeds_once", "seed_links"]

SEED_BATCH: Final = 1000
_LOADING_S: Final = 30.0
"""If an ant pauses for longer than this, in seconds, while it loads seeds, the ant counts as dead."""
_LOADED_S: Final = 60.0
"""After one ant has loaded the seeds, no other ant loads them again for this time, in seconds."""


class LinkSink(Protocol):
    """A function that adds links to the store, like `DuplicateEliminator.discover`."""

    def __call__(self, links: Sequence[Link], *, at: float) -> Sequence[Link]:
        """Add links to the store, and return those that are new."""
        ...


class SeedReport(msgspec.Struct, frozen=True):
    """Counts of loaded seeds. `refused` has, for each reason, the number of refused seeds and the first of
    their URLs.
    """

    new: int
    known: int
    refused: dict[Reason, tuple[int, str]]

    @property
    def read(self) -> int:
        """Number of seeds in the policy file and the seeds file."""
        return self.new + self.known + sum(many for many, _ in self.refused.values())


def load_seeds(collection: Collection, judge: Judge, discover: LinkSink, *, at: float) -> SeedReport:
    """Add to the store all seeds that the collection's own rules allow.

    Raises
    ------
    PolicyError
        if a line of the seeds file is not a URL, because the file changed after the policy file was read. The seeds
        before this line are then in the store.
    """
    new = known = 0
    refused: dict[Reason, tuple[int, str]] = {}
    links = seed_links(collection, judge, refused)
    while batch := list(itertools.islice(links, SEED_BATCH)):
        found = len(discover(batch, at=at))
        new += found
        known += len(batch) - found
    return SeedReport(new, known, refused)


def load_seeds_once(
    collection: Collection,
    judge: Judge,
    discover: LinkSink,
    claims: Claims,
    *,
    owner: str,
    now: Callable[[], float],
    rest: Callable[[], bool],
) -> SeedReport:
    """Load the seeds in only one of the ants that start at the same time. The other ants wait until the seeds are
    loaded.

    Parameters
    ----------
    now : UTC seconds
    rest : waits for a moment, and returns False if this ant is ending and no longer needs seeds
    """
    name = f"seeds/{_digest(collection)}"

    def claim() -> Claim:
        at = now()
        return claims.claim([name], owner=owner, until=at + _LOADING_S, at=at)[0]

    def claim_and_discover(links: Sequence[Link], *, at: float) -> Sequence[Link]:
        claim()
        return discover(links, at=at)

    while (held := claim()).owner != owner:
        # The ant that loaded the seeds gives the claim up, but no other ant can take it for a while. The claim of a
        # dead ant expires.
        if not held.owner or not rest():
            return SeedReport(0, 0, {})
    loaded = load_seeds(collection, judge, claim_and_discover, at=now())
    claims.drop({name: now() + _LOADED_S}, owner=owner, at=now())
    return loaded


def seed_links(collection: Collection, judge: Judge, refused: dict[Reason, tuple[int, str]]) -> Iterator[Link]:
    """Yield the seeds as links, in order. Refused seeds are counted in `refused`."""
    seeds = collection.seed_lines()
    while batch := list(itertools.islice(seeds, SEED_BATCH)):
        for policy, named in itertools.groupby(batch, key=lambda seed: seed[1]):
            links, others = judge.links([url for url, _ in named], judge.seed(policy))
            yield from links
            for url, reason in others:
                many, first = refused.get(reason, (0, url))
                refused[reason] = (many + 1, first)


class Entrance:
    """Judges URLs from outside the crawl, and stores those that are new."""

    def __init__(self, judge: Judge, due: DuplicateEliminator) -> None:
        self.judge = judge
        self.due = due

    def discover(self, urls: Sequence[str], page: PageRecord, *, at: float) -> None:
        """Add the links of a page to the store, except for invalid URLs and URLs that the judge refuses."""
        found = []
        for text in urls:
            with suppress(UrlError):
                found.append(canonical(text))
        origin = Origin("link", page.depth + 1, page.policy, page.trust, page.url, len(found))
        links, _ = self.judge.links(found, origin)
        self.due.discover(links, at=at)


def _digest(collection: Collection) -> str:
    """Return a digest of the policy file and the seeds file."""
    digest = xxhash.xxh3_128(collection.text.encode())
    if collection.seeds_file is not None:
        with contextlib.suppress(OSError):  # `load_seeds` will report why it cannot be read
            digest.update(collection.seeds_file.read_bytes())
    return digest.hexdigest()
