"""Spider traps: URLs that a site makes without end. Each rule looks at one URL and at the page that links it.

No rule keeps state: a crawl that was killed and resumed refuses the same URLs, in whatever order pages come,
and memory stays what it is. The rules, in the words that are counted:

``too_long``
    more than `discovery.max_url_length` characters (2083: the longest that search engines index).
``too_deep``
    more than `collection.limits.depth` hops from a seed: what bounds every trap that no other rule knows.
``trap_repeated``
    one path segment, or one whole query parameter, occurs more than `discovery.max_repeated_segments` times
    (``/a/b/a/b/a/b/a/b``): relative links that lead below themselves. Heritrix's PathologicalPath and Nutch's
    ``(/[^/]+)/[^/]+\\1/[^/]+\\1/`` are its elders; theirs ask for neighbours, and miss longer loops.
``trap_calendar``
    a step out of a calendar: the linking page and the link are of one pattern (equal but for numbers and names of
    months), the page's date is within bounds and the link's is not: before 1990, when there was no web, or
    more than `discovery.calendar_years` after this year. So ``/2029/01`` is refused on ``/2028/12`` but kept on an
    archive's index, a seed list or a sitemap; ``/thread/2105/2`` is kept on ``/thread/2105/1``. A date is
    a year with a month beside it, or a year in a parameter named for time.

Numbered archives (``?page=7``) are no trap: depth bounds them. `judge` asks these; nothing here counts or keeps.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["FIRST_YEAR", "is_off_calendar", "is_repeated", "leaves_calendar", "year_of"]

FIRST_YEAR: Final = 1990
"""Calendar pages of earlier years were not written for the web."""

_MONTH_NAME: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_MONTH: Final = rf"(?:w?[0-5]?[0-9](?![0-9])|{_MONTH_NAME})"
_YEAR: Final = r"(19[0-9]{2}|2[01][0-9]{2})"
_TIME_KEY: Final = r"(?:[?&;](?:y|yr)|year|date|day|month|week|time|cal(?:endar)?|start|from)=(?:[0-9]{1,2}[-/.])*"
_HAS_YEAR: Final = re.compile(r"19[0-9]{2}|2[01][0-9]{2}")
_DATE: Final = re.compile(
    rf"(?<![0-9]){_YEAR}[-/_.]{_MONTH}"  # 2026/11, 2026-11-20, 2026-w47, 2026/november
    rf"|(?<![0-9a-z])(?:[0-3]?[0-9]|{_MONTH_NAME})[-/_.]{_YEAR}(?![0-9])"  # 11-2026, 20.11.2026, november-2026
    rf"|(?<![0-9]){_YEAR}(?:0[1-9]|1[0-2])(?:[0-3][0-9])?(?![0-9])"  # 202611, 20261120
    rf"|{_TIME_KEY}{_YEAR}(?:-?[0-1][0-9]|(?![0-9]))"  # year=2026, date=20261120
)
_VARYING: Final = re.compile(rf"[0-9]+|(?<![a-z]){_MONTH_NAME}")


def is_repeated(url: str, most: int) -> bool:
    """Whether one path segment or one query parameter of `url` occurs more than `most` times."""
    path, _, query = url.partition("?")
    return _repeats(path.split("/")[3:], most) or (query.count("&") >= most and _repeats(query.split("&"), most))


def _repeats(parts: list[str], most: int) -> bool:
    distinct = set(parts)
    # One of n parts can occur most + 1 times only if at least `most` are copies of another.
    return len(parts) - len(distinct) >= most and any(parts.count(part) > most for part in distinct)


def year_of(url: str) -> int | None:
    """The year of the first date in a URL's path or query, from 1900 to 2199; None without a date."""
    at = url.find("/", 8)
    if _HAS_YEAR.search(url, at) is None:
        return None
    found = _DATE.search(url[at:].lower())
    return None if found is None else int(next(year for year in found.groups() if year))


def is_off_calendar(url: str, *, last_year: int) -> bool:
    """Whether a URL has a date before FIRST_YEAR or after `last_year`."""
    year = year_of(url)
    return year is not None and not FIRST_YEAR <= year <= last_year


def leaves_calendar(url: str, source: str, *, last_year: int) -> bool:
    """Whether the link from page `source` to `url` steps over the bounds of a calendar, FIRST_YEAR to `last_year`."""
    if not is_off_calendar(url, last_year=last_year):
        return False
    from_year = year_of(source)
    within = from_year is not None and FIRST_YEAR <= from_year <= last_year
    return within and _pattern(url) == _pattern(source)


def _pattern(url: str) -> str:
    return _VARYING.sub("0", url.lower())
