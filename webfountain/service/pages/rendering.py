"""Render pages: Jinja2 templates of the package, with the filters that format values."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from webfountain.report import plurals
from webfountain.service.pages.strangers_text import plain, shown, web_url, with_marks

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "counted",
    "day_time",
    "duration",
    "environment",
    "number",
    "percent",
    "query_of",
    "size",
    "wait_words",
    "when",
]

_NOTHING: Final = Markup('<span class="none">\u2013</span>')
_UNITS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_BYTES: Final = ("B", "kB", "MB", "GB", "TB")
_WAITS: Final[dict[str, str]] = {
    "in flight": "a request is in flight",
    "polite": "pause between two requests",
    "back-off": "pause after refusals",
    "robots.txt": "waits for its robots.txt",
    "no robots.txt": "its robots.txt could not be read",
    "address": "waits for its IP address",
    "barred": "no page is requested",
    "leasing": "its next pages are being taken from the store",
    "not due": "nothing is due",
    "ready": "next in turn",
}
"""Maps the code of each reason for waiting to the words that the page shows."""
_LATEST: Final = 253_402_300_799.0
"""The last second of the year 9999, UTC seconds; Python's dates end there."""


@cache
def environment() -> Environment:
    """Return the Jinja2 environment of all templates. The templates escape every value, and raise an error for an
    undefined name."""
    found = Environment(
        loader=PackageLoader("webfountain.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "when": when, "number": number, "percent": percent, "duration": duration, "size": size, "shown": shown,
        "plain": plain, "query": query_of, "day_time": day_time, "counted": counted, "wait_words": wait_words,
        "with_marks": with_marks,
    }  # fmt: skip
    found.globals |= {"web_url": web_url, "now": time.time}
    return found


def wait_words(reason: str, word: str | None = None) -> str:
    """Return in words why the crawl requests nothing from a site now. `word` is a detail, such as an error, that is
    appended to the reason."""
    return _WAITS.get(reason, reason) + (f": {word}" if word else "")


def when(at: float | None) -> Markup:
    """Return a time in UTC. In the browser, a script adds the time in the user's time zone."""
    if at is None or not 0 <= at <= _LATEST:
        return _NOTHING
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        moment.strftime("%Y-%m-%dT%H:%M:%SZ"), moment.strftime("%Y-%m-%d %H:%M:%S")
    )


def day_time(at: float) -> str:
    """Return a time in UTC as plain text."""
    return datetime.fromtimestamp(min(max(at, 0.0), _LATEST), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def number(value: float | None, digits: int = 0) -> Markup:
    """Return a number with thin spaces between groups of three digits."""
    return _NOTHING if value is None else escape(f"{value:,.{digits}f}".replace(",", "\u202f"))


def counted(value: int, noun: str) -> Markup:
    """Return a number with its noun, like `report.plurals.counted`, but with thin spaces."""
    return escape(plurals.counted(value, noun).replace(",", "\u202f"))


def percent(share: float | None, digits: int = 1) -> Markup:
    return _NOTHING if share is None else escape(f"{share * 100:.{digits}f}\u202f%")


def duration(seconds: float | None) -> Markup:
    """Return a duration in the largest unit that fits."""
    if seconds is None:
        return _NOTHING
    if 0 < seconds < 1:
        return escape(f"{seconds * 1000:.0f}\u202fms")
    length, unit = next(((length, unit) for length, unit in _UNITS if abs(seconds) >= length), (1.0, "s"))
    value = seconds / length
    return escape(f"{value:.1f}\u202f{unit}" if abs(value) < 10 and length > 1 else f"{value:.0f}\u202f{unit}")


def size(many: float | None) -> Markup:
    """Return a number of bytes in the largest unit that fits."""
    if many is None:
        return _NOTHING
    value, unit = float(many), "B"
    for unit in _BYTES:
        if abs(value) < 1000 or unit == _BYTES[-1]:
            break
        value /= 1000
    return escape(f"{value:.0f}\u202f{unit}" if value >= 100 or unit == "B" else f"{value:.1f}\u202f{unit}")


def query_of(values: Mapping[str, Any]) -> str:
    """Return a query string without parameters that have no value."""
    return urlencode({name: value for name, value in values.items() if value not in (None, "", False)})
