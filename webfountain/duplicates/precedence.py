"""The order of precedence between duplicate pages: pages on seeds' sites first, then more trusted pages, then older
pages.

The order of fetches must not decide precedence: a copy that is fetched first would replace the original. Scheme and a
leading ``www.`` of a seed's site are ignored, because seeds often redirect to such variants. Seed site, trust and age
do not depend on the order of fetches, so two pages cannot keep replacing each other.
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
    """The order of precedence of pages in a collection, for the worker thread."""

    def __init__(self, collection: Collection | None = None) -> None:
        self._seeds: frozenset[str] = frozenset()
        if collection is not None:
            self.adopt(collection)

    def adopt(self, collection: Collection) -> None:
        """Replace the known seeds by the seeds of a collection."""
        self._seeds = frozenset(_name(site_of(url)) for url in collection.seeds())

    def outranks(self, page: PageRecord, other: PageRecord, *, before: PageRecord | None = None) -> bool:
        """Return whether a page takes precedence over a crawled page that it repeats.

        `before` is the page's record before the current fetch; None at the first fetch.
        """
        ours, theirs = self._rank(page), self._rank(other)
        if ours != theirs:
            return ours > theirs
        return before is not None and is_held(before) and page.first_seen < other.first_seen

    def is_equal(self, page: PageRecord, other: PageRecord) -> bool:
        """Return whether two crawled pages have equal precedence."""
        return (*self._rank(page), page.first_seen) == (*self._rank(other), other.first_seen)

    def _rank(self, page: PageRecord) -> tuple[bool, float]:
        return _name(site_of(page.url)) in self._seeds, page.trust


def _name(site: str) -> str:
    """Return the host and port of a site, without scheme and ``www.``."""
    return site.partition("://")[2].removeprefix("www.")
