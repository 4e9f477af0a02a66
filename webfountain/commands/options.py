"""Options and arguments that several commands share, and the functions that parse them."""

from __future__ import annotations

import datetime
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import click

from webfountain.config import DEFAULT_STORE
from webfountain.errors import InputError
from webfountain.store.change_log import is_cursor

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "FiniteRange",
    "as_json",
    "as_lines",
    "as_text",
    "main_content",
    "repository",
    "since_of",
    "store",
    "time_of",
]

_SECONDS: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
"""Pattern of a time in UTC seconds, such as 1767225600.5. The pattern rejects nan, inf, 1_000 and non-ASCII digits,
which Python's `float` accepts."""

store: Callable[[Any], Any] = click.option(
    "--store",
    metavar="URL",
    default=DEFAULT_STORE,
    envvar="WEBFOUNTAIN_STORE",
    show_default=True,
    help="The store: rocksdb://folder, or a server: redis://host:port/0, unix:///socket and others.",
)
repository: Callable[[Any], Any] = click.option(
    "--repository",
    metavar="DIR",
    envvar="WEBFOUNTAIN_REPOSITORY",
    help="Folder of the copies.  [default: <store folder>/repository]",
)
main_content: Callable[[Any], Any] = click.option(
    "--main", is_flag=True, help="Only the main content: no navigation, banners, teasers and footers."
)
as_json: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
as_lines: Callable[[Any], Any] = click.option(
    "--jsonl", "--json", "as_lines", is_flag=True, help="Print JSON lines: one document per line."
)


def as_text(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Refuse an argument that is not valid text, because a shell can pass any bytes."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"{value!r} is not text in UTF-8") from None
    return value


class FiniteRange(click.FloatRange):
    """A range of numbers like `click.FloatRange`, except that it rejects nan and inf."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def time_of(text: str) -> float:
    """Return UTC seconds from a number, an ISO date or an ISO time. A date or time without a time zone is in UTC."""
    if _SECONDS.fullmatch(text) is not None:
        return float(text)
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not a time (allowed: UTC seconds, 2026-01-31 or 2026-01-31T12:00)") from None
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


def since_of(text: str | None) -> str | float | None:
    """Return the value of `--since`: a cursor of the change log, or a time in UTC seconds."""
    return text if text is None or is_cursor(text) else time_of(text)
