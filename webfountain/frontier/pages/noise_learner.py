"""Learn noise from the visits of pages, and order extra visits.

The learner works when a new body is compared with the old copy (`page_comparison`), for policies with `change.learn`.
The parts of a page (`core.noise`) are stored with its record. For the `MAX_SITES` sites visited last, what was learned
is in memory. A new process learns the noise of a site from the records of its pages.

If a part of a page differs again and again, an extra visit within seconds is ordered, to show whether the part is noise
(`extra_visits`). At most `EXTRA_SHARE` of the visits are extra visits.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.core.line_differences import ABSENT
from webfountain.core.noise import PagePart, SiteNoise, decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.core.line_differences import Differences
    from webfountain.records import PageRecord

__all__ = ["CLOSE_S", "EXTRA_SHARE", "NoiseLearner", "NoiseReport"]

EXTRA_SHARE: Final = 0.02
CLOSE_S: Final = 60.0
"""Two visits of a page show noise only if they are at most this far apart, in seconds. The limit is lower for a short
time period, or for pages that are planned to be fetched very often."""
MAX_SITES: Final = 1000
_ALL: Final = ""
"""Name under which the visits of all sites are counted."""


class NoiseReport(NamedTuple):
    """What was learned at a visit: `parts` of the page, `noise` of its site, and `due`, the time of an extra visit or
    None.
    """

    parts: list[PagePart]
    noise: frozenset[int]
    due: float | None


class NoiseLearner:
    """Learner of noise for one crawling process. Any thread may call its methods.

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
        """Count a visit. The number of extra visits is bounded by the number of all visits."""
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
        """Return `PageRecord.noise` after a visit that found the same body."""
        return encode(self._learn(record, site, at, None).parts) if record.noise else b""

    def _learn(self, record: PageRecord, site: str, at: float, differences: Differences | None) -> NoiseReport:
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
        """Return the time of an extra visit. Return None if no part is undecided, or if enough extra visits were
        ordered.
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
