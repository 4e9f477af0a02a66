"""Precedence of two pages that repeat each other: a page of a seed's site first, then the more trusted, then the
older.

The order of fetches must not decide; otherwise a faster copy would replace the original site. A page is *of a seed* if
its site is the site of a seed of the collection. The scheme and a leading ``www.`` are ignored here, because seeds
often redirect to such variants. Age counts only between two held pages: a page that is new, or that now repeats another
page, has no age to compare. A fetch never changes these criteria, so two pages never replace each other in turn.

Place in the walk: the duplicate detector (`duplicates`) calls this module. It does not compare texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store.change_log import is_held
from webfountain.urls import site_of

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord

__all__ = ["Precedence"]


class Precedence:
    """The order of precedence among pages of one collection. Used by the worker thread only."""

    def __init__(self, collection: Collection | None = None) -> None:
        """Without a collection, there are no seeds."""
        self._seeds: frozenset[str] = frozenset()
        if collection is not None:
            self.adopt(collection)

    def adopt(self, collection: Collection) -> None:
        """Use the seeds of this collection from now on."""
        self._seeds = frozenset(_name(site_of(url)) for url in collection.seeds())

    def outranks(self, page: PageRecord, other: PageRecord, *, before: PageRecord | None = None) -> bool:
        """Return whether a page outranks a held page that it repeats.

        `before` is the page's record before the current fetch; None: it was never fetched.
        """
        ours, theirs = self._rank(page), self._rank(other)
        if ours != theirs:
            return ours > theirs
        return before is not None and is_held(before) and page.first_seen < other.first_seen

    def is_equal(self, page: PageRecord, other: PageRecord) -> bool:
        """Return whether neither page outranks the other if both are held."""
        return (*self._rank(page), page.first_seen) == (*self._rank(other), other.first_seen)

    def _rank(self, page: PageRecord) -> tuple[bool, float]:
        return _name(site_of(page.url)) in self._seeds, page.trust


def _name(site: str) -> str:
    """Return the host and port of a site, without scheme and ``www.``."""
    return site.partition("://")[2].removeprefix("www.")
