"""Compute policy, trust and depth of known pages again after an edit of the policy file, site after site.

Place in the walk: this pass runs in the worker thread, as a part of the review (`policy_review`), which reads the
pages. A leased page is skipped and computed again after it has landed. `policy.lineage` does the computation; this
module applies it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.policy.lineage import Lineage
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.policy.lineage import PageName
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["Derivation"]


class Derivation:
    """One pass over the known pages by one policy file. `put` counts pages that were changed; `is_settled` is False
    once a page was skipped because it was leased.
    """

    def __init__(self, store: FrontierStore, collection: Collection, judge: Judge) -> None:
        self._store = store
        self._read: dict[PageName, PageRecord | None] = {}
        self._lineage = Lineage(collection, judge, self._page)
        self.put = 0
        self.is_settled = True

    def begin_round(self) -> None:
        """Start again with the first site."""
        self._lineage.clear()
        self.put, self.is_settled = 0, True

    def derive(self, site: str, records: Sequence[PageRecord], *, at: float) -> tuple[list[PageRecord], list[bytes]]:
        """Apply the policy file to pages of a site. Return the current records of all, and the keys of the changed
        pages.

        It costs one read of the store for each page that led to others, and one step of the store.
        """
        found = self.revised(records, at=at)
        if not found:
            return list(records), []
        keys = {fingerprint(url): url for url in found}
        lineage = self._lineage
        # The store computes the records again, because a page may have been fetched since it was read.
        done = self._store.queues.reassign(site, list(keys), lambda record: lineage.revised(record, at=at))
        self.put += done.put
        self.is_settled = self.is_settled and not done.leased
        left = {keys[key] for key in done.leased}
        now = [record if record.url in left else found.get(record.url, record) for record in records]
        return now, [key for key, url in keys.items() if url not in left]

    def revised(self, records: Sequence[PageRecord], *, at: float) -> dict[str, PageRecord]:
        """Return, by URL, the new records of pages that the policy file changes."""
        self._read = {}
        self._read_parents(records)
        found = ((record.url, self._lineage.revised(record, at=at)) for record in records)
        return {url: new for url, new in found if new is not None}

    def _read_parents(self, records: Iterable[PageRecord]) -> None:
        """Read the pages through which the records were found, and their parents in turn: one step of the store per
        site and hop."""
        while wanted := self._lineage.missing(records) - self._read.keys():
            of_site: dict[str, list[bytes]] = {}
            for site, key in wanted:
                of_site.setdefault(site, []).append(key)
            for site, keys in of_site.items():
                names = ((site, key) for key in keys)
                self._read.update(zip(names, self._store.pages.get_many(site, keys), strict=True))
            records = [record for name in wanted if (record := self._read[name]) is not None]

    def _page(self, site: str, key: bytes) -> PageRecord | None:
        name = (site, key)
        return self._read[name] if name in self._read else self._store.pages.get(site, key)
