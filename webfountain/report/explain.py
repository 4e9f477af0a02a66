"""Explain one URL for `webfountain explain`: why a page is in its state, or why it was never accepted.

`known_page` and `unknown_url` do the work, with `UrlFacts` from a store that a crawl may be writing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.errors import InputError, PolicyError, UrlError
from webfountain.policy.collection_file import read_collection
from webfountain.policy.edits import CollectionInForce
from webfountain.policy.judge import Origin
from webfountain.report.explanation import Explanation
from webfountain.report.known_page import KnownPage
from webfountain.report.unknown_url import UnknownUrl
from webfountain.report.url_facts import UrlFacts
from webfountain.report.verdict_words import verdict_words
from webfountain.store.contract import COLLECTION
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["collection_of", "explain", "refusal_of"]


def collection_of(store: FrontierStore, given: str | None = None) -> Collection:
    """Return the collection of a store: from the policy file `given`, or from the one that the crawl uses.

    Raises
    ------
    PolicyError
        if the file cannot be used, or if none is given and the store contains none.
    """
    if given is not None:
        return read_collection(given)
    kept = store.board.value(COLLECTION)
    if kept is None:
        raise PolicyError("--collection: the store has no policy file (a crawl stores the file that is in force)")
    return CollectionInForce.decode(kept).read()


def explain(
    store: FrontierStore,
    collection: Collection,
    given: str,
    *,
    at: float,
    linked_by: str | None = None,
    scores: Path | None = None,
    links: str | None = None,
) -> Explanation:
    """Return the explanation of a URL, `at` UTC seconds. If the URL is unknown, judge it as a link of the known page
    `linked_by`.

    `scores` is the folder of the crawl's rankings and `links` its link log, if they can be read.

    Raises
    ------
    InputError
        if `linked_by` is malformed or unknown.
    """
    try:
        url = canonical(given)
    except UrlError as error:
        return Explanation(given, None, known=False, why=(f"It has no canonical form: {error}.",))
    facts = UrlFacts(store, collection, url, at=at)
    linking = None if linked_by is None else _known_page(store, linked_by)
    record = store.pages.get(facts.site, fingerprint(url))
    if record is None:
        return UnknownUrl(facts, linking).explain(given, links)
    return KnownPage(facts, record).explain(given, scores)


def refusal_of(store: FrontierStore, collection: Collection, url: str, *, at: float) -> str | None:
    """Return why the policy file would refuse a canonical URL given to `now`, or None."""
    known = store.pages.get(site_of(url), fingerprint(url))
    policy = "default" if known is None else known.policy  # as for a note
    verdict = UrlFacts(store, collection, url, at=at).verdict(Origin("queued", 0, policy))
    return None if verdict.reason is None else verdict_words(verdict)


def _known_page(store: FrontierStore, given: str) -> PageRecord:
    url = canonical(given)
    record = store.pages.get(site_of(url), fingerprint(url))
    if record is None:
        raise InputError(f"--from {given!r}: the page is not known here")
    return record
