"""One active site whose pages are chosen by urgency.

A site is made from the records of its pages (`begin_site`), or restored from its saved data (`resume_site`). The site
keeps the results of fetches until the next computation of its urgencies (`reckoning`). The `ranking` shows which pages
are urgent at a given price of a fetch. Urgencies and prices are in seconds, and times in UTC seconds.

If a site is very large, its `UrgentSite` contains the pages of only one window (`site_windows`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from webfountain.core.forecast import Belief  # noqa: TC001  (msgspec reads it)
from webfountain.core.page_dates import PageDates, distinguishing
from webfountain.core.site_urgency import SiteUrgency
from webfountain.frontier.planning.page_numbers import KEY_BYTES, PageNumbers
from webfountain.frontier.planning.site_ranking import SiteRanking
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgency_terms import SiteSteps, UrgencyTerms
from webfountain.urls import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from webfountain.core.site_answers import SectionRate
    from webfountain.records import PageRecord

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

__all__ = ["UrgentSite", "resume_site", "section_rates"]


class UrgentSite:
    """One active site, with the urgencies of its pages and the results of their last fetches."""

    __slots__ = (
        "_encoded",
        "_learned_at",
        "believed",
        "kept",
        "met",
        "news",
        "observed",
        "pages",
        "ranking",
        "terms",
        "urgencies",
        "windows",
    )

    def __init__(
        self,
        urgencies: SiteUrgency,
        pages: PageNumbers,
        ranking: SiteRanking,
        terms: UrgencyTerms,
        *,
        observed: Mapping[int, tuple[int, bool]] | None = None,
        believed: Belief | None = None,
        kept: bytes = b"",
        encoded: bytes | memoryview | None = None,
    ) -> None:
        """`kept` contains the data that were last saved for the site. `encoded` is the saved form of `urgencies`."""
        self.urgencies = urgencies
        self.pages = pages
        self.ranking = ranking
        self.terms = terms
        self.windows = Windows.whole()
        """The windows of a very large site."""
        self.observed: dict[int, tuple[int, bool]] = dict(observed or {})
        """For each page fetched since the last computation, by number: the step of the fetch, and whether the page had
        changed.
        """
        self.met: dict[bytes, PageRecord] = {}
        """Records of pages that were fetched for the first time and have no number yet."""
        self.believed = believed
        """The site's estimate in the collection's forecast: how many of its pages are obsolete."""
        self.news = 0
        """Number of fetches and other changes since the site was last encoded."""
        self.kept = kept
        self._encoded = encoded  # encoded `urgencies`; None after something was learned
        self._learned_at = -inf

    def __len__(self) -> int:
        return len(self.ranking)

    def follow(self, terms: UrgencyTerms) -> bool:
        """Adopt new terms, or return False if the site must be rebuilt from its page records.

        A site must be rebuilt if the length of a time step, or a policy's minimum time between fetches, has changed.
        """
        if terms.rests != self.terms.rests:
            return False
        if terms.shortest != self.terms.shortest:
            self.terms = self.terms._replace(shortest=terms.shortest)
            self.ranking.outdate(forget_reaches=True)
        if terms.fit(self.terms.interval):
            return True
        terms = terms.rounded()
        if terms.step_s != self.ranking.steps.step_s:
            return False
        self.terms = terms
        self.urgencies.believe(terms.beliefs)
        self.ranking.outdate(forget_reaches=True)
        self.news += 1
        return True

    # ------------------------------------------------------------ visits

    def receive(self, key: bytes, record: PageRecord | None, kind: str, at: float) -> None:
        """Record the result of a fetch."""
        self.news += 1
        if record is None or record.state != "crawled" or kind == "failed":
            self.drop(key)
            return
        if self.windows.put_off(key, record, kind, at):
            return
        page, since = self.pages.number(key), self.terms.candidate_since(record)
        if page is None:
            self.met[key] = record
        elif self.ranking.candidate_since[page] != since:  # if they are equal, the record was read after this visit
            self.ranking.end_wait(page, since)
            self.ranking.dates.visit(page, changed=kind == "changed")
            # A second fetch does not undo a change that was found.
            _, changed = self.observed.get(page, (0, False))
            self.observed[page] = self.ranking.steps.step(at), changed or kind == "changed"

    def receive_dates(self, later: Mapping[bytes, bool]) -> list[bytes]:
        """Adjust the urgencies of pages by their dates in a sitemap or feed. `later` says for each page whether its
        date is later than the time of the stored copy.

        Return the keys of the pages that the caller must make due: pages outside memory with dates later than their
        copies. If earlier dates of the site were not reliable, return no key. Dates are not reliable if, for example, a
        sitemap gives all pages today's date.
        """
        numbers = {key: self.pages.number(key) for key in later}
        known = [(page, later[key]) for key, page in numbers.items() if page is not None]
        if known:
            pages, is_later = (np.array(each) for each in zip(*known, strict=True))
            self.ranking.dates.receive(pages, is_later)
            self.ranking.outdate(forget_reaches=True)
            self.news += 1
        if self.ranking.dates.is_futile:
            return []
        return [key for key in distinguishing(later) if numbers[key] is None]

    def drop(self, key: bytes) -> None:
        """Record that a page must not be made due, because its fetch failed, or the page is gone or refused. The page
        can become urgent again only after a successful fetch.
        """
        self.news += 1
        if self.windows.put_off(key, None, "failed", 0.0):
            return
        self.met.pop(key, None)
        page = self.pages.number(key)
        if page is not None:
            self.ranking.end_wait(page, inf)

    def give_up(self, at: float) -> None:
        """Give up the fetches of pages that have been due for longer than the mean interval between visits."""
        for page, since in list(self.ranking.waits.items()):
            if since >= at - self.terms.interval:
                break
            self.drop(self.pages.key(page))

    def number_new_pages(self) -> None:
        """Give numbers to the pages that were fetched for the first time."""
        records = {key: record for key, record in self.met.items() if self.pages.number(key) is None}
        self.met.clear()
        if not records:
            return
        steps, some = self.ranking.steps, records.values()
        self.urgencies.add(
            [path_of(record.url) for record in some],
            since=np.array([steps.step(record.last_crawled or 0.0) for record in some]),
            importance=np.array([self.terms.weight(record) for record in some]),
        )
        self._encoded = None
        self.pages.add(records)
        self.ranking.add([self.terms.candidate_since(record) for record in some])

    # ------------------------------------------------------------ learning

    def learned(self, at: float) -> None:
        """Forget the results of fetches after a computation has used them."""
        self.observed.clear()
        self._learned_at, self._encoded = at, None
        self.ranking.outdate()

    def believe(self, new: Belief) -> Belief | None:
        """Set the site's estimate of obsolete pages for the collection's forecast, and return the previous estimate."""
        before, self.believed = self.believed, new
        return before

    def should_learn(self, at: float, pause: float) -> bool:
        """Return whether urgencies must be computed again although pages of the site are due, because a fetch found a
        change. After changes, the urgencies are computed again, but at most once every `pause` seconds.
        """
        waits = self.ranking.waits
        if not waits or at < max(self._learned_at, next(iter(waits.values()))) + pause:
            return False
        return self._has_found_changes()

    def is_reckoned(self, at: float) -> bool:
        """Return whether a computation now would give the same ranking."""
        ranking = self.ranking
        return not (self.observed or ranking.has_grown) and ranking.is_of_step(at) and ranking.is_known

    def is_stale(self, price: float, at: float, pause: float) -> bool:
        """Return whether urgencies must be computed again to find the pages whose urgency reaches the price."""
        ranking = self.ranking
        if not ranking.reaches or (price <= ranking.most and not ranking.is_known):
            return True
        if at < ranking.rests_until:
            return bool(self.observed) and self.should_learn(at, pause)
        if self.observed or ranking.has_grown:
            return not ranking.waits or not ranking.is_of_step(at) or self.should_learn(at, pause)
        if price <= ranking.most:
            return not ranking.is_of_step(at)
        reach = ranking.reaches_at(price, at)
        return (reach is None or reach <= at) and not ranking.is_of_step(at)

    def _has_found_changes(self) -> bool:
        return any(changed for _, changed in self.observed.values())

    # ------------------------------------------------------------ choosing

    def urgent(self, price: float, at: float) -> tuple[Ints, Array]:
        """Return the pages whose urgency reaches the price and that may be made due, with their urgencies."""
        return self.ranking.urgent(price, at - self.terms.shortest)

    def make_due(self, pages: Ints, at: float) -> list[bytes]:
        """Record that pages were made due, and return their keys."""
        return [self.pages.key(page) for page in self.ranking.make_due(pages, at)]

    def demand(self, price: float, at: float) -> int:
        """Return how many pages are due (in all windows) or urgent enough to be made due (in the current window)."""
        fetched_by = at - self.terms.shortest if self.terms.shortest else inf
        return self.ranking.demand(price, fetched_by) + len(self.windows.waits)

    @property
    def waiting(self) -> int:
        """Number of pages that are due but not yet fetched."""
        return len(self.ranking.waits) + len(self.windows.waits)

    def ask_at(self, price: float, at: float) -> float:
        """Return when the urgency of a page of the site may next reach the price."""
        ranking, early = self.ranking, self.windows.early_at(self.terms)
        since = ranking.due_since(price)
        if since < inf:
            return min(since + self.terms.shortest, early)
        due = ranking.reckon_at(price, at)
        if ranking.has_grown or self._has_found_changes():
            due = min(due, ranking.rests_until)
        return min(max(due, ranking.rests_until), early)

    def rest(self) -> None:
        """Record that the site is parked, and forget which pages are due."""
        self.windows.waits.clear()
        self.ranking.forget_waits()

    # ------------------------------------------------------------ windows

    def some(self, pages: Flags, *, believed: Belief | None) -> UrgentSite:
        """Return a site with only the chosen pages, which keep their order and get new numbers."""
        numbers = np.cumsum(pages) - 1
        return UrgentSite(
            self.urgencies.some(pages),
            self.pages.some(pages),
            self.ranking.some(pages),
            self.terms,
            observed={int(numbers[page]): found for page, found in self.observed.items() if pages[page]},
            believed=believed,
        )

    def join(self, windows: Windows, newest: SiteUrgency | None) -> None:
        """Make this object the current window of a site. `newest` contains the newest change rates of the site's
        sections, if they are known.
        """
        if newest is not None:
            self.urgencies.follow(newest)
            self._encoded = None
        self.windows, self.believed = windows, windows.believed.get(windows.hand, self.believed)
        for key, since in windows.waits_at_hand():
            page = self.pages.number(key)
            if page is not None:
                self.ranking.wait_on(page, since)
        for away in windows.away.get(windows.hand, ()):
            self.receive(away.key, away.record, away.kind, away.at)
        self.number_new_pages()
        self.ranking.outdate(forget_reaches=True)  # other windows may have learned about the site
        self.news = 0

    def beliefs(self) -> list[Belief]:
        """Return each window's estimate of its obsolete pages, for the collection's forecast."""
        return self.windows.beliefs(self.believed)

    # ------------------------------------------------------------ keeping

    def encode(self) -> bytes:
        """Return the data for `resume_site`, about 44 bytes per page."""
        self.news = 0
        if self._encoded is None:
            self._encoded = self.urgencies.encode()
        ranking = self.ranking
        self.kept = msgspec.msgpack.encode(
            [
                *(self.terms.interval, self.believed, self.pages.keys, ranking.candidate_since.tobytes()),
                *(self._encoded, self.observed, ranking.most, ranking.asked, ranking.reaches, ranking.rests_until),
                *(self.terms.rests_mark, ranking.dates.saved()),
            ]
        )
        return self.kept

    def encode_windows(self) -> bytes:
        """Return the data that the store must save with a site that is divided into windows."""
        self.kept = self.windows.encode(self.believed)
        return self.kept


def resume_site(name: str, data: bytes, terms: UrgencyTerms) -> tuple[UrgentSite | None, Belief | None]:
    """Restore the site that `UrgentSite.encode` wrote, and return it with its estimate of obsolete pages.

    If the data cannot be read, or were saved under different terms, the returned site is None.
    """
    believed = None
    try:
        stored = msgspec.msgpack.decode(data, type=_SavedSite)
        believed = stored.believed
        own = terms._replace(interval=stored.interval)
        known = SiteUrgency.decode(stored.urgencies, signals=own.beliefs)
    except ValueError:
        return None, believed
    ranking = SiteRanking(
        SiteSteps.of(name, own),
        np.frombuffer(stored.candidate_since, dtype=np.float64),
        most=stored.most,
        asked=stored.asked,
        reaches=stored.reaches,
        rests_until=stored.rests_until,
        dates=PageDates(*stored.dates),
    )
    site = UrgentSite(
        *(known, PageNumbers(stored.keys), ranking, own),
        observed=stored.observed,
        believed=believed,
        kept=data,
        encoded=stored.urgencies,
    )
    fits = stored.rests_mark == terms.rests_mark and site.follow(terms)
    is_whole = fits and len(stored.keys) == KEY_BYTES * len(site) == KEY_BYTES * len(known)
    return site if is_whole else None, believed


def section_rates(name: str, data: bytes, terms: UrgencyTerms) -> list[SectionRate]:
    """Read the change rates of a site's sections, per second, from the saved data of the site or of one of its windows.

    Return an empty list if the data cannot be read.
    """
    try:
        stored = msgspec.msgpack.decode(data, type=_SavedSite)
        own = terms._replace(interval=stored.interval)
        found = SiteUrgency.decode(stored.urgencies, signals=own.beliefs).section_rates()
    except ValueError:
        return []
    return [each._replace(rate=each.rate / SiteSteps.of(name, own).step_s) for each in found]


class _SavedSite(msgspec.Struct, frozen=True, array_like=True):
    """The data that are saved for a site, or for one window of a very large site."""

    interval: float
    believed: Belief | None
    keys: bytes
    candidate_since: memoryview
    urgencies: memoryview
    observed: dict[int, tuple[int, bool]]
    most: float
    asked: float
    reaches: list[float]
    rests_until: float = -inf
    rests_mark: int = 0
    dates: tuple[bytes, tuple[float, ...]] = PageDates().saved()
