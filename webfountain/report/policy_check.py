"""Check a policy file: what it means, and what it would do to an existing collection.

The command `policy check` and the service use this module before a crawl or an edit. The figures are exact, because the
check uses the same code as the crawl after an edit (`policy.lineage`). A crawl may be running during the check.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.frontier.inbox.seeds import seed_links
from webfountain.policy.collection import describe, notes_on
from webfountain.policy.judge import Judge, Origin, judge_again
from webfountain.policy.lineage import Lineage
from webfountain.policy.rules import spell_rule
from webfountain.policy.scope import kept_forms
from webfountain.policy.url_rules import REASONS
from webfountain.report.store_reading import page_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webfountain.policy.collection import Collection
    from webfountain.policy.url_rules import Reason
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["PolicyEffect", "described", "effect_on", "newly_followed", "policy_effect"]

_SAMPLE: Final = 10
"""Maximum number of example URLs for each kind of effect."""
_BATCH: Final = 1000


def described(collection: Collection) -> dict[str, Any]:
    """Describe a policy file: its rules in words, notes on likely mistakes, and the number of seeds that its own rules
    refuse."""
    return {
        **describe(collection),
        "rules": list(map(spell_rule, collection.tables.rule)),
        "seeds_refused": _refused_seeds(collection),
        "notes": notes_on(collection),
    }


def effect_on(
    store: FrontierStore, collection: Collection, *, links: str | None, most: int | None = None
) -> dict[str, Any]:
    """Return the effect of a policy file on the pages of a store.

    Parameters
    ----------
    links : the link log of the crawl, if it has one
    most : read at most this many pages
    """
    judge = Judge(collection, year=time.gmtime().tm_year, forms=kept_forms(store.board))
    lineage = Lineage(collection, judge, store.pages.get)
    records = (record for _, record in islice(store.pages.records(), most))
    effect: dict[str, Any] = msgspec.to_builtins(policy_effect(judge, records, lineage))
    found = [] if links is None else sorted(_newly_followed(judge, store, links, lineage))
    return effect | {"followed": len(found), "sample_followed": found[:_SAMPLE]}


def _refused_seeds(collection: Collection) -> int:
    """Return how many seeds of a policy file are refused by its own rules."""
    refused: dict[Reason, tuple[int, str]] = {}
    for _ in seed_links(collection, Judge(collection, year=time.gmtime().tm_year), refused):
        pass
    return sum(many for many, _ in refused.values())


def _newly_followed(judge: Judge, store: FrontierStore, links: str, lineage: Lineage) -> Iterator[str]:
    """Yield the links to unknown URLs that the crawl refused but the new policy file would accept."""
    from webfountain.ranking.link_log import LinkLogReader  # noqa: PLC0415  (pyarrow, 0.3 s)

    def known(url: str) -> PageRecord | None:
        return page_at(store, url)

    refused = ((known(url), found) for url, found in LinkLogReader(links).unfollowed().items())
    pages = ((page, found) for page, found in refused if page is not None and page.duplicate_of is None)
    yield from (url for url in newly_followed(judge, pages, lineage) if known(url) is None)


class PolicyEffect(msgspec.Struct, frozen=True):
    """The effect of a policy file on a store, in numbers and examples.

    - `known`: number of judged URLs.
    - `dropped`: reason -> number of URLs that would be dropped.
    - `taken`: number of refused URLs that would be accepted again.
    - `moved`: ``before -> after`` -> number of pages that would get another policy.
    - `retrusted`: number of pages that would keep their policy but get another trust.
    """

    known: int
    dropped: dict[str, int]
    taken: int
    sample_dropped: tuple[str, ...]
    sample_taken: tuple[str, ...]
    moved: dict[str, int] = {}
    retrusted: int = 0
    sample_moved: tuple[str, ...] = ()


def policy_effect(judge: Judge, records: Iterable[PageRecord], lineage: Lineage | None = None) -> PolicyEffect:
    """Compute the effect of a policy file on page records.

    Without `lineage`, each page keeps its current policy.

    URLs that the crawl refused when it found them are not in the store; `newly_followed` finds them in the link log.
    The check ignores the stored requests of a user's own Scrapy spider.
    """
    known = taken = retrusted = 0
    dropped: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    samples: tuple[list[str], list[str], list[str]] = ([], [], [])
    remaining = iter(records)
    while batch := list(itertools.islice(remaining, _BATCH)):
        known += len(batch)
        for place, record in enumerate(batch):
            new = None if lineage is None else lineage.revised(record, at=0.0)
            if new is None:
                continue
            batch[place] = new
            if new.policy != record.policy:
                moved[f"{record.policy} -> {new.policy}"] += 1
                _keep(samples[2], record.url)
            else:
                retrusted += new.trust != record.trust
        for page, verdict in judge_again(judge, batch):
            was_refused = page.state == "refused" and page.error in REASONS
            if verdict.reason is not None and not was_refused:
                dropped[verdict.reason] += 1
                _keep(samples[0], page.url)
            elif verdict.reason is None and was_refused:
                taken += 1
                _keep(samples[1], page.url)
    return PolicyEffect(
        known,
        dict(dropped.most_common()),
        taken,
        sample_dropped=tuple(samples[0]),
        sample_taken=tuple(samples[1]),
        moved=dict(moved.most_common()),
        retrusted=retrusted,
        sample_moved=tuple(samples[2]),
    )


def newly_followed(
    judge: Judge, pages: Iterable[tuple[PageRecord, Sequence[str]]], lineage: Lineage | None = None
) -> set[str]:
    """Return the links that the crawl refused but the new policy file would accept."""
    found: set[str] = set()
    for record, urls in pages:
        page = (None if lineage is None else lineage.revised(record, at=0.0)) or record
        verdicts = judge.judge(urls, Origin("link", page.depth + 1, page.policy, page.trust, page.url))
        found.update(url for url, verdict in zip(urls, verdicts, strict=True) if verdict.reason is None)
    return found


def _keep(sample: list[str], url: str) -> None:
    if len(sample) < _SAMPLE:
        sample.append(url)
