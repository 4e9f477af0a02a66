"""The sections of a site, with the number of changes per page and day in each."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.core.buckets import interval_of
from webfountain.core.sections import SITE, Sections
from webfountain.core.signals import Signals
from webfountain.core.site_answers import SectionRate
from webfountain.frontier.batch import SavedSiteData
from webfountain.frontier.planning.site_windows import Windows
from webfountain.frontier.planning.urgency_terms import UrgencyTerms
from webfountain.frontier.planning.urgent_site import section_rates
from webfountain.urls import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["sections_by_pages", "sections_learned"]

_DAY_S: Final = 86_400.0


def sections_learned(store: FrontierStore, site: str, *, most: int) -> list[SectionRate]:
    """Return the change rates that the crawl learned for the sections of a site, in changes per page and day.

    The first row is for the whole site, followed by the sections with the most pages. The list is empty if the crawl
    has no budget, because only a crawl with a budget learns change rates of sections. If a site is very large, the
    numbers cover only those pages that the crawl last had in memory.
    """
    record = store.sites.get(site)
    if record is None:
        return []
    kept = SavedSiteData.of(record).urgency
    windows = Windows.decode(kept)
    if windows is not None:
        kept = store.sites.part(site, windows.newest) or b""
    terms = UrgencyTerms(Signals(), store.census.period_s, inf, 0.0, weighed=False)
    found = [each._replace(rate=each.rate * _DAY_S) for each in section_rates(site, kept, terms)]
    return found[:1] + sorted(found[1:], key=lambda each: -each.pages)[: most - 1]


def sections_by_pages(pages: Sequence[PageRecord], *, fastest_s: float, most: int) -> list[SectionRate]:
    """Compute the change rates of a site's sections from some of its crawled pages. The change rate of a section is the
    mean change rate of its pages."""
    sections = Sections(max_depth=3)
    numbers = sections.sections_of([path_of(page.url) for page in pages])
    parents, names = sections.parents(), sections.names()
    counts, rates = [0] * len(names), [0.0] * len(names)
    for number, page in zip(numbers, pages, strict=True):
        rate = _DAY_S / interval_of(page.bucket, fastest_s)
        counts[number] += 1
        while True:
            rates[number] += rate
            if number == SITE:
                break
            number = parents[number]  # noqa: PLW2901
    within = list(counts)
    for number in range(len(names) - 1, 0, -1):
        within[parents[number]] += within[number]
    found = [
        SectionRate(*each)
        for each in zip(names, counts, (a / max(b, 1) for a, b in zip(rates, within, strict=True)), strict=True)
    ]
    return found[:1] + sorted(found[1:], key=lambda each: -each.pages)[: most - 1]
