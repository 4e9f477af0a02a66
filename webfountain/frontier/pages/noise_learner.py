"""Learn which places of pages are noise, from the visits of a page and of its site.

The learner works when a new body is compared with the old copy (`page_comparison`), for policies with `change.learn`.
The places of a page are stored with its record. The places of the last `MAX_SITES` sites are in memory, and are learned
again from the records of pages.

Two visits a few seconds apart are the best evidence. If a place is undecided on the whole site, the learner orders an
extra visit: it sets the due time in the record, and `extra_visits` puts the page first. At most `EXTRA_SHARE` of the
visits are extra visits. From ordinary visits, undone differences at a place are counted over all pages of the site,
which share their template (`core.noise`).
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.core.noise import STREAK, UNDONE_ON_SITE, NoisyPlace, decode, encode, noise_of, observed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.core.noise import Differences
    from webfountain.records import PageRecord

__all__ = ["CLOSE_S", "EXTRA_SHARE", "NoiseLearner", "NoiseReport"]

EXTRA_SHARE: Final = 0.02
CLOSE_S: Final = 60.0
"""Longest time between two visits that counts as seconds apart, s. A short period or change interval reduces it."""
MAX_SITES: Final = 1000
_ALL: Final = ""
"""Name under which the visits of all sites are counted."""
MAX_PLACES_OF_SITE: Final = 256
_RECENT: Final = 30
"""Number of judged differences of a place on a site from which older differences count half."""
REST_OF_SITE: Final = 10
"""Number of successive visits without a difference at a place after which the site forgets the place."""


class NoiseReport(NamedTuple):
    """The places of a page after a visit, the places that are noise on the page or its site, and the time of an extra
    visit or None.
    """

    places: list[NoisyPlace]
    noise: frozenset[int]
    due: float | None


class NoiseLearner:
    """Learns which places of pages are noise, for one crawling process. Any thread may call the methods.

    Parameters
    ----------
    period_s : length of a time period
    fastest_s : shortest change interval that is planned
    """

    def __init__(self, period_s: float, fastest_s: float) -> None:
        self._close_s = min(CLOSE_S, period_s / 1000, fastest_s / 10)
        self._sites: OrderedDict[str, dict[int, NoisyPlace]] = OrderedDict()
        self._guard = threading.Lock()
        self._visits: Counter[str] = Counter()
        self._extra: Counter[str] = Counter()

    def count_visit(self, site: str) -> None:
        """Count a visit, which allows a share of an extra visit."""
        with self._guard:
            for each in (site, _ALL):
                self._visits[each] += 1
            if len(self._visits) > MAX_SITES:
                for each in list(self._visits)[: MAX_SITES // 2]:
                    if each != _ALL:
                        del self._visits[each], self._extra[each]

    def compare(self, record: PageRecord, site: str, at: float, differences: Differences) -> NoiseReport:
        """Learn from the differences between a new body and the old copy."""
        return self._learn(record, site, at, differences)

    def rest(self, record: PageRecord, site: str, at: float) -> bytes:
        """Return `PageRecord.noise` after a visit without differences."""
        return encode(self._learn(record, site, at, None).places) if record.noise else b""

    def _learn(self, record: PageRecord, site: str, at: float, differences: Differences | None) -> NoiseReport:
        # A page that was gone at the last visit was not compared then: its copy is older than the visit.
        is_compared = record.state == "crawled" and record.last_crawled is not None
        is_close = is_compared and at - (record.last_crawled or 0.0) <= self._close_s
        before = decode(record.noise)
        with self._guard:
            known = self._of_site(site, before)
            found = observed(before, differences, seconds_apart=is_close, of_site=known)
            pages = {each.place: each for each in before}
            for each in found:
                _update(known, pages.get(each.place, NoisyPlace(each.place)), each, is_close=is_close)
            places = [each for each in found if each.is_stored]
            noise = noise_of(places) | {each.place for each in known.values() if each.confirmed}
            due = None
            if differences is not None and not is_close:
                # The lines of an element that is noise need no decision of their own.
                open_places = {place for place, each in differences.places.items() if each.around not in noise}
                tried = [each for each in places if each.place in differences.held & open_places]
                due = self._extra_visit(site, at, tried, known)
            return NoiseReport(places, noise, due)

    def _of_site(self, site: str, places: Sequence[NoisyPlace]) -> dict[int, NoisyPlace]:
        """Return the places of a site, including tried places from the record of a page."""
        known = self._sites.setdefault(site, {})
        self._sites.move_to_end(site)
        if len(self._sites) > MAX_SITES:
            self._sites.popitem(last=False)
        for each in places:
            if (each.tried or each.confirmed) and len(known) < MAX_PLACES_OF_SITE:
                known.setdefault(each.place, msgspec.structs.replace(each, undone=0, stayed=0))
        return known

    def _extra_visit(
        self, site: str, at: float, places: Sequence[NoisyPlace], known: Mapping[int, NoisyPlace]
    ) -> float | None:
        """Return the time of an extra visit, or None. The visit is for a place that differed, is in the new copy, and
        is undecided on the whole site.
        """
        wanted = [each for each in places if not each.rested and not known.get(each.place, each).is_decided]
        if not wanted:
            return None
        # The limit on a site's extra visits applies only from its second extra visit on.
        is_over = self._extra[site] and self._extra[site] + 1 > EXTRA_SHARE * self._visits[site]
        if is_over or self._extra[_ALL] + 1 > EXTRA_SHARE * self._visits[_ALL]:
            return None
        # Half of the extra visits are left for the places that a streak is about to silence, rightly or not.
        is_last = any(each.streak >= STREAK - 1 for each in wanted)
        if not is_last and any(self._extra[each] > EXTRA_SHARE / 2 * self._visits[each] for each in (site, _ALL)):
            return None
        for each in (site, _ALL):
            self._extra[each] += 1
        return at + self._close_s / 2


def _update(known: dict[int, NoisyPlace], page: NoisyPlace, seen: NoisyPlace, *, is_close: bool) -> None:
    """Update a place of a site after a visit. `page` and `seen` are the place of the page before and after the
    visit.
    """
    site = known.get(seen.place)
    undone, stayed = seen.undone - page.undone, seen.stayed - page.stayed
    if site is None:
        # Most edits stay. They may take only half of the room.
        room = MAX_PLACES_OF_SITE if is_close or undone else MAX_PLACES_OF_SITE // 2 if stayed else 0
        if len(known) >= room:
            return
        site = NoisyPlace(seen.place, sample=seen.sample)
    if is_close:
        tried, confirmed = max(seen.tried, site.tried), seen.confirmed or site.confirmed
        site = msgspec.structs.replace(site, rested=0, tried=tried, confirmed=confirmed)
    else:
        site = msgspec.structs.replace(site, rested=site.rested + 1 if seen.rested else 0)
    if undone or stayed:
        share = 1 if site.undone + site.stayed < _RECENT else 2
        site = msgspec.structs.replace(site, undone=site.undone // share + undone, stayed=site.stayed // share + stayed)
        if site.is_drawn(UNDONE_ON_SITE):
            site = msgspec.structs.replace(site, confirmed=True)
    if site.rested < REST_OF_SITE:
        known[seen.place] = site
    else:
        del known[seen.place]
