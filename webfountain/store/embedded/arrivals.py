"""How links enter the embedded store: which are new, and what their arrival changes in one step."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webfountain.store.counting import Counted, count_arrivals, period_of
from webfountain.store.embedded.keys import site_id
from webfountain.store.embedded.sites import BARRED_SITE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.records import Link
    from webfountain.store.embedded.disk import WriteBatch
    from webfountain.store.embedded.ledger import Ledger
    from webfountain.store.embedded.pages import Pages
    from webfountain.store.embedded.queues import SiteQueues
    from webfountain.store.embedded.sites import SiteRow, Sites

__all__ = ["ActiveSite", "Arrivals"]


@dataclass(slots=True)
class ActiveSite:
    """An active site: until when, its queues, when a new URL came that no lease has reached since (inf: none)."""

    until: float
    queues: SiteQueues
    fresh: float = math.inf


class Arrivals:
    """Stages links into a batch. What it notes of active sites only errs towards looking too early."""

    def __init__(
        self, pages: Pages, sites: Sites, ledger: Ledger, active: Mapping[str, ActiveSite], period_s: float
    ) -> None:
        self._pages = pages
        self._sites = sites
        self._ledger = ledger
        self._active = active
        self._period_s = period_s

    def stage(self, batch: WriteBatch, links: Sequence[Link], at: float) -> dict[bytes, tuple[Link, bytes]]:
        """Stage the links that are new: page key -> link, queue entry. One multi-get, two puts a new URL."""
        sids = {site: site_id(site) for site in {link.site for link in links}}
        rows = {site: self._sites.row(site) for site in sids}
        fresh: dict[bytes, Link] = {}
        for link, (key, value) in zip(links, self._pages.values(links, sids), strict=True):
            if value is None and key not in fresh and rows[link.site] is not BARRED_SITE:
                fresh[key] = link
        staged = self._put_new(batch, fresh, at)
        for site, pages in Counter([link.site for link in fresh.values()]).items():
            self._arrived(batch, site, rows[site], pages, at)
        counted: Counted = {}
        count_arrivals(counted, period_of(at, self._period_s), sum(not link.source for link in fresh.values()))
        self._ledger.count(counted)
        return staged

    def _put_new(self, batch: WriteBatch, fresh: dict[bytes, Link], at: float) -> dict[bytes, tuple[Link, bytes]]:
        entries = self._pages.put_new(batch, fresh, arrival=self._ledger.arrivals + 1, at=at)
        self._ledger.arrivals += len(fresh)
        staged = dict(zip(fresh, zip(fresh.values(), entries, strict=True), strict=True))
        for link, entry in staged.values():
            if link.site in self._active:
                self._active[link.site].queues.note(entry)
        return staged

    def _arrived(self, batch: WriteBatch, site: str, row: SiteRow | None, pages: int, at: float) -> None:
        if row is None:
            row = self._sites.add(batch, site, at)
            self._ledger.sites += 1
        self._ledger.add_new(row, pages)
        self._sites.touch(site, row)
        active = self._active.get(site)
        if active is None:
            self._sites.due_sooner(batch, site, row, at)
        else:
            active.fresh = min(active.fresh, at)
