"""Learn which parts of pages are noise, and request extra visits to find out.

For policies with `change.learn`, noise is learned whenever a new body is compared with the old copy
(`page_comparison`). The parts of a page that may be noise are stored in the page's record (`core.noise`). The noise of
the `MAX_SITES` sites visited last is in memory. A new process learns a site's noise from the records of the site's
pages.

If a part of a page often differs, the page is visited again within seconds, to see whether the part is noise
(`extra_visits`). At most `EXTRA_SHARE` of all visits are extra visits.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.core.line_differences import ABSENT
from webfountain.core.noise import PagePart, SiteNoise, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.core.line_differences import Differences
    from webfountain.records import PageRecord

__all__ = ["CLOSE_S", "EXTRA_SHARE", "NoiseLearner", "NoiseReport"]

EXTRA_SHARE: Final = 0.02
CLOSE_S: Final = 60.0
"""Two visits to a page can show noise only if at most this many seconds lie between them, or fewer if the period or the
shortest planned change interval is short.
"""
MAX_SITES: Final = 1000
_ALL: Final = ""
"""Key of the counts for all sites together."""


class NoiseReport(NamedTuple):
    """What the learner knows after a visit: the `parts` of the page, and the `noise` of its site. `due` is the time of
    a requested extra visit, or None.
    """

    parts: list[PagePart]
    noise: frozenset[int]
    due: float | None


class NoiseLearner:
    """Learns noise in one crawling process. Any thread may call the methods of this class.

    Parameters
    ----------
    period_s : length of a time period
    fastest_s : shortest change interval that is planned
    """

    def __init__(self, period_s: float, fastest_s: float) -> None:
        self._close_s = min(CLOSE_S, period_s / 1000, fastest_s / 10)
        self._sites: OrderedDict[str, SiteNoise] = OrderedDict()
        self._guard = threading.Lock()
        self._visits: Counter[str] = Counter()
        self._extra: Counter[str] = Counter()

    def count_visit(self, site: str) -> None:
        """Count a visit, because the number of extra visits is limited to a share of all visits."""
        with self._guard:
            for each in (site, _ALL):
                self._visits[each] += 1
            if len(self._visits) > MAX_SITES:
                for each in list(self._visits)[: MAX_SITES // 2]:
                    if each != _ALL:
                        del self._visits[each], self._extra[each]

    def learn(self, record: PageRecord, site: str, at: float, differences: Differences | None) -> NoiseReport:
        """Learn from the differences between a page's new body and its old copy; None if the body is unchanged."""
        # A page that was gone at the last visit was not compared then: its copy is older than the visit.
        is_compared = record.state == "crawled" and record.last_crawled is not None
        is_close = is_compared and at - (record.last_crawled or 0.0) <= self._close_s
        with self._guard:
            known = self._noise_of(site)
            parts = known.learn(decode(record.noise), differences, is_close=is_close)
            due = None if is_close else self._extra_visit(site, at, parts)
            return NoiseReport(parts, known.noise, due)

    def _noise_of(self, site: str) -> SiteNoise:
        if site not in self._sites:
            self._sites[site] = SiteNoise()
            if len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        self._sites.move_to_end(site)
        return self._sites[site]

    def _extra_visit(self, site: str, at: float, parts: Sequence[PagePart]) -> float | None:
        """Return the time for an extra visit. Return None if no part of the page is undecided, or if too many extra
        visits were requested.
        """
        undecided = [each for each in parts if each.is_open and each.now != ABSENT and each.evidence.is_undecided]
        if not undecided:
            return None
        # Half of the extra visits are left for parts that still cause reports.
        share = EXTRA_SHARE / 2 if all(each.is_noise for each in undecided) else EXTRA_SHARE
        if self._extra[_ALL] + 1 > share * self._visits[_ALL] or self._extra[site] > share * self._visits[site]:
            return None
        for each in (site, _ALL):
            self._extra[each] += 1
        return at + self._close_s / 2
