"""Check a policy file: what it means, and what it would do to an existing collection.

`webfountain policy check` and the service call it. Nothing is changed.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.frontier.inbox.seeds import seed_links
from webfountain.policy.collection import describe, notes_on
from webfountain.policy.effect import newly_followed, policy_effect
from webfountain.policy.judge import Judge
from webfountain.policy.lineage import Lineage
from webfountain.policy.rules import spell_rule
from webfountain.policy.scope import kept_forms
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.policy.collection import Collection
    from webfountain.policy.url_rules import Reason
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["described", "effect_on"]

_SAMPLE: Final = 10
"""Number of examples of URLs that an edited policy file would accept."""


def described(collection: Collection) -> dict[str, Any]:
    """Return the meaning of a policy file: its rules in words, notes, and how many of its own seeds it refuses."""
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
    """Return how many of its own seeds the file refuses; a crawl whose seeds are all refused ends at once."""
    refused: dict[Reason, tuple[int, str]] = {}
    for _ in seed_links(collection, Judge(collection, year=time.gmtime().tm_year), refused):
        pass
    return sum(many for many, _ in refused.values())


def _newly_followed(judge: Judge, store: FrontierStore, links: str, lineage: Lineage) -> Iterator[str]:
    """Yield links that the crawl refused and that this judge would accept."""
    from webfountain.ranking.link_log import LinkLogReader  # noqa: PLC0415  (pyarrow, 0.3 s)

    def known(url: str) -> PageRecord | None:
        return store.pages.get(site_of(url), fingerprint(url))

    refused = ((known(url), found) for url, found in LinkLogReader(links).unfollowed().items())
    pages = ((page, found) for page, found in refused if page is not None and page.duplicate_of is None)
    yield from (url for url in newly_followed(judge, pages, lineage) if known(url) is None)
