"""List seeds that have no page, with the reason: at the end of a crawl, at the end of its first period, and in
`status`.

Users write seeds by hand, so each seed without a page is listed: its site cannot be reached, it redirects out of scope
or in a loop, it is gone, or its own rules refuse it. The module reads the store, even while a crawl writes it; it
follows redirects through the targets in the records, a few reads per seed. Nothing is changed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import PolicyError
from webfountain.frontier.batch import remembered
from webfountain.policy.edits import CollectionInForce
from webfountain.policy.judge import Judge
from webfountain.policy.scope import kept_forms
from webfountain.records import STATES
from webfountain.store.contract import COLLECTION
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["MAX_SEEDS", "SeedWithoutPage", "seed_lines", "seeds_in_force", "seeds_without_pages"]

MAX_SEEDS: Final = 5000
"""Number of seeds that are checked; of a longer file, the first ones. The check takes about a second."""
_MAX_HOPS: Final = 20
"""Number of redirects that are followed from a seed, as many as browsers follow."""
_CRAWLED: Final = STATES.index("crawled")
_SHOWN: Final = 5


class SeedWithoutPage(msgspec.Struct, frozen=True):
    """A seed, the reason why it has no page, and whether it was tried. A seed that was not tried yet does not count as
    failed."""

    url: str
    why: str
    tried: bool = True


def seeds_in_force(store: FrontierStore, *, year: int) -> list[SeedWithoutPage]:
    """Return `seeds_without_pages` for the policy file in the store; nothing if it cannot be read."""
    kept = store.board.value(COLLECTION)
    if kept is None:
        return []
    try:
        collection = CollectionInForce.decode(kept).read()
        return seeds_without_pages(store, collection, year=year)
    except PolicyError:
        return []


def seeds_without_pages(store: FrontierStore, collection: Collection, *, year: int) -> list[SeedWithoutPage]:
    """Return the seeds, in order, that neither have a copy nor led to one.

    A seed whose redirects end at a page with a copy has led to it. So has the only seed of a site whose pages came
    from a sitemap. Two seeds of one site are checked separately.

    Raises
    ------
    PolicyError
        at a line of the seeds file that is not a URL, or if the file cannot be read.
    """
    seeds = list(itertools.islice(collection.seeds_with_policies(), MAX_SEEDS))
    judge = Judge(collection, year=year, forms=kept_forms(store.board))
    on_site = Counter(site_of(url) for url, _ in seeds)
    records = _records_of(store, [url for url, _ in seeds])
    found = []
    for (url, policy), record in zip(seeds, records, strict=True):
        chain = [url]
        verdict = _verdict_on(store, judge, policy, record, chain)
        if verdict is None:
            continue
        if verdict.tried and on_site[site_of(url)] == 1 and any(_has_pages(store, site_of(each)) for each in chain):
            continue
        found.append(verdict)
    return found


def seed_lines(found: Sequence[SeedWithoutPage]) -> list[str]:
    """Return one sentence for each of the first few seeds, and one for the rest."""
    lines = [f"{each.url}: {each.why}" for each in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN:,} more")
    return lines


def _records_of(store: FrontierStore, urls: Sequence[str]) -> list[PageRecord | None]:
    """Return the records of URLs, in order. Neighbouring URLs of one site are read together."""
    found: list[PageRecord | None] = []
    for site, group in itertools.groupby(urls, key=site_of):
        found += store.pages.get_many(site, [fingerprint(url) for url in group])
    return found


def _verdict_on(
    store: FrontierStore, judge: Judge, policy: str, record: PageRecord | None, chain: list[str]
) -> SeedWithoutPage | None:
    """Return why a seed has no page, or None if it has one. Its redirect targets are appended to `chain`."""
    seed = chain[0]
    while record is not None and record.state == "redirected" and record.target is not None:
        target = record.target
        if target in chain:
            return SeedWithoutPage(seed, f"it redirects in a loop ({' -> '.join([*chain[-3:], target])})")
        if len(chain) > _MAX_HOPS:
            return SeedWithoutPage(seed, f"it redirects more than {_MAX_HOPS} times")
        before, record = record, store.pages.get(site_of(target), fingerprint(target))
        if record is None:
            return SeedWithoutPage(seed, f"it redirects to {target}, {_refusal_of(judge, before)}")
        chain.append(target)
    url = chain[-1]
    to = "" if url == seed else f"it redirects to {url}: "
    if record is None:
        reason = judge.judge([seed], judge.seed(policy))[0].reason
        why = "it was forgotten, or is not loaded yet" if reason is None else f"the policy file refuses it ({reason})"
        return SeedWithoutPage(seed, why, tried=reason is not None)
    if record.state == "crawled":
        return None
    why, tried = _state_of(store, record)
    return SeedWithoutPage(seed, to + why, tried=tried)


def _refusal_of(judge: Judge, record: PageRecord) -> str:
    """Return why the target of a redirect is unknown."""
    reason = (record.error or "").removeprefix("target ")
    if reason == "out_of_scope" and not judge.is_in_scope(site_of(record.target or "")):
        return "which is out of scope (give it as a seed to crawl it)"
    return f"which is refused ({reason.replace('_', ' ')})" if reason else "which was forgotten"


def _state_of(store: FrontierStore, record: PageRecord) -> tuple[str, bool]:
    """Return the state of a page without a copy, and whether it was tried."""
    match record.state:
        case "gone":
            return f"it is gone (status {record.status})", True
        case "refused":
            return f"it is refused ({record.error})", True
        case "never-crawled":
            home = store.sites.get(site_of(record.url))
            error = "" if home is None else remembered(home).error
            return (f"its site cannot be reached ({error})", True) if error else ("it was not fetched yet", False)
        case _:
            return f"it failed ({record.error or record.status})", True


def _has_pages(store: FrontierStore, site: str) -> bool:
    home = store.sites.get(site)
    return home is not None and len(home.pages) > _CRAWLED and home.pages[_CRAWLED] > 0
