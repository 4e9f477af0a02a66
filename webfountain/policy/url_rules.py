"""Apply the rules of one policy to a URL: accept the URL, or return the first reason to refuse it.

Some rules refuse spider traps: URLs that a site generates without end. A rule uses only the URL and the page that links
to it, so that a resumed crawl refuses the same URLs. Each refusal is counted under one of these reasons:

- ``too_long``: more than `discovery.max_url_length` characters (2083: the longest that search engines index).
- ``too_deep``: more than `collection.limits.depth` hops from a seed. This limits every other trap.
- ``trap_repeated``: one path segment, or one whole query parameter, occurs more than `discovery.max_repeated_segments`
  times (``/a/b/a/b/a/b/a/b``). Relative links that lead below their own page make such loops. Heritrix's
  PathologicalPath and Nutch's ``(/[^/]+)/[^/]+/[^/]+/`` find only short loops.
- ``trap_calendar``: a link from a calendar page to a date outside the limits. The limits are 1990 and
  `discovery.calendar_years` after the current year. Both URLs must be equal except for numbers and names of months, and
  the linking page's date must be within the limits. So ``/2029/01`` is refused if ``/2028/12`` links to it, but not if
  an archive's index, a seed list or a sitemap does. ``/thread/2105/2`` is accepted from ``/thread/2105/1``. A date is a
  year next to a month, or a year in a query parameter that is named like a time.

Numbered archives (``?page=7``) are not refused as traps, because `collection.limits.depth` bounds them.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from webfountain.policy.patterns import any_of, any_of_lines
from webfountain.urls import host_of, path_start, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.policy.tables import DiscoveryTable, PolicyTable

__all__ = [
    "DATED",
    "FIRST_YEAR",
    "REASONS",
    "Reason",
    "UrlRules",
    "Verdict",
    "anywhere",
    "has_year",
    "is_off_calendar",
    "is_repeated",
    "leaves_calendar",
    "year_of",
]

FIRST_YEAR: Final = 1990
"""Links to calendar pages of a year before FIRST_YEAR are not followed."""
_MONTH_NAME: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_MONTH: Final = rf"(?:w?[0-5]?[0-9](?![0-9])|{_MONTH_NAME})"
_YEAR: Final = r"(19[0-9]{2}|2[01][0-9]{2})"
_TIME_KEY: Final = r"(?:[?&;](?:y|yr)|year|date|day|month|week|time|cal(?:endar)?|start|from)=(?:[0-9]{1,2}[-/.])*"
_CENTURIES: Final = (re.compile(r"19[0-9]{2}"), re.compile(r"2[01][0-9]{2}"))
"""Expressions that find a year from 1900 to 2199."""
_DATE: Final = re.compile(
    rf"(?<![0-9]){_YEAR}[-/_.]{_MONTH}"  # 2026/11, 2026-11-20, 2026-w47, 2026/november
    rf"|(?<![0-9a-z])(?:[0-3]?[0-9]|{_MONTH_NAME})[-/_.]{_YEAR}(?![0-9])"  # 11-2026, 20.11.2026, november-2026
    rf"|(?<![0-9]){_YEAR}(?:0[1-9]|1[0-2])(?:[0-3][0-9])?(?![0-9])"  # 202611, 20261120
    rf"|{_TIME_KEY}{_YEAR}(?:-?[0-1][0-9]|(?![0-9]))"  # year=2026, date=20261120
)
_VARYING: Final = re.compile(rf"[0-9]+|(?<![a-z]){_MONTH_NAME}")
Reason = Literal[
    "out_of_scope",
    "denied",
    "not_allowed",
    "too_deep",
    "too_long",
    "trap_repeated",
    "trap_calendar",
    "not_followed",
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
_URL_MEMO: Final = 16_384
"""Maximum number of cached URLs, which take about 4 MB. The links of a site's template are on all pages of the site, so
the cache saves three quarters of the work.
"""
DATED: Final = "trap_calendar"
"""Result for a URL whose date is outside the limits; such a URL is refused only if the linking page is part of the same
calendar.
"""
_LEAST_SLASHES: Final = 3
"""Number of slashes in ``scheme://host/``, to which a path of n segments adds n - 1."""


def has_year(text: str, at: int = 0) -> bool:
    """Return whether `text` contains, at index `at` or later, four digits that may be a year from 1900 to 2199."""
    last, present = _CENTURIES
    return last.search(text, at) is not None or present.search(text, at) is not None


def is_repeated(url: str, most: int) -> bool:
    """Return whether a path segment or a query parameter of `url` occurs more than `most` times."""
    path, _, query = url.partition("?")
    return _repeats(path.split("/")[3:], most) or (query.count("&") >= most and _repeats(query.split("&"), most))


def _repeats(parts: list[str], most: int) -> bool:
    distinct = set(parts)
    # One of n parts can occur most + 1 times only if at least `most` parts are copies of others.
    return len(parts) - len(distinct) >= most and any(parts.count(part) > most for part in distinct)


def year_of(url: str) -> int | None:
    """Return the year of the first date in a URL's path or query, from 1900 to 2199, or None if there is no date."""
    at = path_start(url)
    if not has_year(url, at):
        return None
    found = _DATE.search(url[at:].lower())
    return None if found is None else int(next(year for year in found.groups() if year))


def is_off_calendar(url: str, *, last_year: int) -> bool:
    """Return whether a URL has a date before FIRST_YEAR or after `last_year`."""
    year = year_of(url)
    return year is not None and not FIRST_YEAR <= year <= last_year


def leaves_calendar(url: str, source: str, *, last_year: int) -> bool:
    """Return whether a link between two pages of a calendar leads to a year before FIRST_YEAR or after `last_year`."""
    if not is_off_calendar(url, last_year=last_year):
        return False
    from_year = year_of(source)
    within = from_year is not None and FIRST_YEAR <= from_year <= last_year
    return within and _pattern(url) == _pattern(source)


def _pattern(url: str) -> str:
    return _VARYING.sub("0", url.lower())


class Verdict(NamedTuple):
    """Verdict on a URL: its policy, its trust (0 to 1), and the reason if the URL is refused.

    `rule` is the number of the ``[[rule]]`` that set policy and trust (`policy.provenance`), or b"".
    """

    policy: str
    trust: float
    reason: Reason | None
    rule: bytes = b""


class UrlRules:
    """The compiled rules of one policy. The rules say which URLs are refused, and which linked pages inherit the
    policy.
    """

    def __init__(
        self, name: str, table: PolicyTable, discovery: DiscoveryTable, *, domain_of: Callable[[str], str], year: int
    ) -> None:
        self.name = name
        self.table = table
        self._domain_of = domain_of
        self.refused = {reason: Verdict(name, 0.0, reason) for reason in REASONS}
        self._longest = discovery.max_url_length
        self._most = discovery.max_repeated_segments
        self._last_year = year + discovery.calendar_years
        self._allow = any_of(table.allow)
        self._deny = any_of(table.deny)
        self._denies_some = any_of_lines(table.deny)
        self._flaw = functools.lru_cache(_URL_MEMO)(self._find_flaw)

    def flaws(self, urls: Sequence[str]) -> list[Reason | None]:
        """Return a list with the reason to refuse each URL, or None for an accepted URL."""
        if self._allow is None and self._are_plain(urls):
            return [None] * len(urls)
        return list(map(self._flaw, urls))

    def _are_plain(self, urls: Sequence[str]) -> bool:
        """Return True if one quick search of all URLs proves that no URL is refused; allow patterns are not checked."""
        together, most = "\n".join(urls), self._most
        return (
            together.count("&") < most
            and not has_year(together)
            and max([url.count("/") for url in urls], default=0) < _LEAST_SLASHES + most
            and (len(together) <= self._longest or max(map(len, urls)) <= self._longest)
            and not self._denies_some(together)
        )

    def _find_flaw(self, url: str) -> Reason | None:
        """Return the reason to refuse a URL, or None. Return DATED if the decision depends on the linking page."""
        if len(url) > self._longest:
            return "too_long"
        if self._deny is not None and self._deny(url):
            return "denied"
        if self._allow is not None and not self._allow(url):
            return "not_allowed"
        most = self._most
        # Counting is four times as fast as splitting, and most URLs are too short to contain a loop.
        if (url.count("/") >= _LEAST_SLASHES + most or url.count("&") >= most) and is_repeated(url, most):
            return "trap_repeated"
        return DATED if is_off_calendar(url, last_year=self._last_year) else None

    def step(self, url: str, source: str) -> Reason | None:
        """Return "trap_calendar" if `leaves_calendar` is true of the link from `source` to `url`, else None."""
        return "trap_calendar" if source and leaves_calendar(url, source, last_year=self._last_year) else None

    def reach(self, source: str) -> Callable[[str], bool]:
        """Return a function that says whether links of the page `source` to a given site inherit the page's policy
        (`spread`).
        """
        if self.table.spread == "any" or not source:
            return anywhere
        home = site_of(source)
        if self.table.spread == "site":
            return home.__eq__
        domain_of = self._domain_of
        domain = domain_of(host_of(home))
        return lambda site: site == home or domain_of(host_of(site)) == domain


def anywhere(_site: str) -> bool:
    return True
