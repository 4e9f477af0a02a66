"""Problems that a user must know at the end of a crawl: seeds without a page, and unreachable sites.

Each seed is listed with a reason, such as: it is gone, or the policy file refuses it. The URLs of an unreachable site
stay never-crawled, and the site's record contains the error.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import PolicyError
from webfountain.frontier.batch import remembered
from webfountain.policy.judge import Judge
from webfountain.policy.scope import kept_forms
from webfountain.records import STATES
from webfountain.report.plurals import counted
from webfountain.report.store_reading import every_site, page_at, policy_in_force
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord, SiteRecord
    from webfountain.store.contract import FrontierStore

__all__ = [
    "SeedWithoutPage",
    "Troubles",
    "UnreachableSites",
    "robots_words",
    "seed_lines",
    "seeds_in_force",
    "seeds_without_pages",
    "site_error",
    "troubles_of",
    "unreachable",
]

MAX_SEEDS: Final = 5000
"""Maximum number of seeds that are checked; checking them takes about a second."""
_MAX_HOPS: Final = 20
"""Maximum number of redirects that are followed from a seed; browsers follow as many."""
_CRAWLED: Final = STATES.index("crawled")
_SHOWN: Final = 5

MAX_SITES: Final = 20_000
"""Maximum number of sites that `unreachable` reads; reading them takes a fraction of a second."""
_NEVER_CRAWLED: Final = STATES.index("never-crawled")


class SeedWithoutPage(msgspec.Struct, frozen=True):
    """A seed for which the store has no page, and the reason. `tried` is False if the crawl has not fetched the seed
    yet; such a seed does not count as failed."""

    url: str
    why: str
    tried: bool = True


def seeds_in_force(store: FrontierStore, *, year: int) -> list[SeedWithoutPage]:
    """Return those seeds of the current policy file that have no page, or [] if the policy file cannot be read."""
    kept = policy_in_force(store)
    try:
        return [] if kept is None else seeds_without_pages(store, kept.read(), year=year)
    except PolicyError:
        return []


def seeds_without_pages(store: FrontierStore, collection: Collection, *, year: int) -> list[SeedWithoutPage]:
    """Return the seeds for which the store has no copy, in the order of the policy file.

    A seed is not listed if it redirects to a page with a copy. A failed seed is not listed if it is the only seed of
    its site and the site has a fetched page.

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
    """Return a line for each of the first five seeds without a page, and a line with the number of the others."""
    lines = [f"{each.url}: {each.why}" for each in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN:,} more")
    return lines


def _records_of(store: FrontierStore, urls: Sequence[str]) -> list[PageRecord | None]:
    """Return the records of URLs, in the order of the URLs."""
    found: list[PageRecord | None] = []
    for site, group in itertools.groupby(urls, key=site_of):
        found += store.pages.get_many(site, [fingerprint(url) for url in group])
    return found


def _verdict_on(
    store: FrontierStore, judge: Judge, policy: str, record: PageRecord | None, chain: list[str]
) -> SeedWithoutPage | None:
    """Return why a seed has no page, or None if the seed has a page. Append the targets of the seed's redirects to
    `chain`.
    """
    seed = chain[0]
    while record is not None and record.state == "redirected" and record.target is not None:
        target = record.target
        if target in chain:
            return SeedWithoutPage(seed, f"it redirects in a loop ({' -> '.join([*chain[-3:], target])})")
        if len(chain) > _MAX_HOPS:
            return SeedWithoutPage(seed, f"it redirects more than {_MAX_HOPS} times")
        before, record = record, page_at(store, target)
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
    """Return the reason why the redirect target of a page is not in the store."""
    reason = (record.error or "").removeprefix("target ")
    if reason == "out_of_scope" and not judge.is_in_scope(site_of(record.target or "")):
        return "which is out of scope (give it as a seed to crawl it)"
    return f"which is refused ({reason.replace('_', ' ')})" if reason else "which was forgotten"


def _state_of(store: FrontierStore, record: PageRecord) -> tuple[str, bool]:
    """Return in words why a page has no copy, and whether the crawl tried to fetch the page."""
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


class UnreachableSites(msgspec.Struct, frozen=True):
    """The unreachable sites of a store.

    `read` is the number of sites that were examined.

    - `sites`, `urls`: number of these sites, and of their waiting URLs.
    - `why`: error word -> number of sites.
    - `examples`: pairs (site, error word).
    """

    sites: int
    urls: int
    why: dict[str, int]
    examples: list[tuple[str, str]]
    read: int

    def words(self) -> str:
        """Return a line of text about the unreachable sites, or "" if all sites answer."""
        if not self.sites:
            return ""
        sites = f"{counted(self.sites, 'site')} cannot be reached"
        urls = f"{counted(self.urls, 'URL')} {'waits' if self.urls == 1 else 'wait'}"
        examples = ", ".join(f"{site} ({why})" for site, why in self.examples)
        more = ", …" if self.sites > len(self.examples) else ""
        return f"{sites}, {urls}: {examples}{more}"


def site_error(record: SiteRecord) -> str:
    """Return why the last attempt to reach a site failed, or "" if it did not fail."""
    return remembered(record).error


def robots_words(record: SiteRecord) -> str:
    """Return the state of a site's robots.txt in words: not fetched, none, read, or why it could not be fetched."""
    state = remembered(record)
    if not state.robots_ok or (state.robots_at is None and state.error):
        return f"unreachable ({state.error.removeprefix('robots.txt: ')})" if state.error else "unreachable"
    if state.robots_at is None:
        return "not requested yet"
    return "none" if state.robots is None else "read"


def unreachable(store: FrontierStore) -> UnreachableSites:
    """Return the unreachable sites among the first `MAX_SITES` sites."""
    why: Counter[str] = Counter()
    examples: list[tuple[str, str]] = []
    urls = read = 0
    for record in itertools.islice(every_site(store), MAX_SITES):
        read += 1
        if error := site_error(record):
            why[error] += 1
            urls += record.pages[_NEVER_CRAWLED]
            if len(examples) < _SHOWN:
                examples.append((record.site, error))
    return UnreachableSites(sum(why.values()), urls, dict(why.most_common()), examples, read)


class Troubles(msgspec.Struct, frozen=True):
    """The problems of a crawl: seeds without a page, and unreachable sites."""

    seeds_without_pages: list[SeedWithoutPage]
    unreachable: UnreachableSites

    @property
    def failed_seeds(self) -> list[SeedWithoutPage]:
        """Return the seeds that were tried but have no page."""
        return [each for each in self.seeds_without_pages if each.tried]

    def seed_words(self) -> str:
        """Return a line of text about the failed seeds, or "" if no seed failed."""
        failed = self.failed_seeds
        if not failed:
            return ""
        return f"{counted(len(failed), 'seed')} gave no page: {'; '.join(seed_lines(failed))}"


def troubles_of(store: FrontierStore, *, year: int) -> Troubles:
    """Find the unreachable sites of a store, and the seeds that have no page. `year` is the current year, because the
    rule against endless calendars depends on it."""
    return Troubles(seeds_in_force(store, year=year), unreachable(store))
