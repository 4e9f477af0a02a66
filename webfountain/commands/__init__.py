"""The commands, one module per purpose. Each parses its options, calls a function of a room below, and prints.

A command raises what goes wrong; `cli.main` turns it into a line and an exit status. Here is what several commands
share: their options, each parsed in one place, opening a store, printing plain data for people or for programs.
"""

from __future__ import annotations

import contextlib
import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from webfountain.config import DEFAULT_STORE
from webfountain.errors import InputError, shown
from webfountain.store import folder_of, is_shared, open_store
from webfountain.store.rules import is_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webfountain.repository import Pages
    from webfountain.store.contract import FrontierStore

__all__ = [
    "as_json",
    "copies",
    "cursor_of",
    "existing_folder",
    "inbox_folder",
    "places_of",
    "print_json",
    "print_json_lines",
    "print_table",
    "reading",
    "repository",
    "repository_folder",
    "since_of",
    "spell_time",
    "store",
    "time_of",
]

store: Callable[[Any], Any] = click.option(
    "--store",
    metavar="URL",
    default=DEFAULT_STORE,
    envvar="WEBFOUNTAIN_STORE",
    show_default=True,
    help="Where the frontier lives: rocksdb://folder, or a server: redis://host:port/0, unix:///socket and others.",
)
repository: Callable[[Any], Any] = click.option(
    "--repository",
    metavar="DIR",
    envvar="WEBFOUNTAIN_REPOSITORY",
    help="Where the copies lie.  [default: <store folder>/repository]",
)
as_json: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@contextlib.contextmanager
def reading(url: str) -> Iterator[FrontierStore]:
    """An existing store, opened for reading, also beside the crawl that writes it."""
    if not is_shared(url) or folder_of(url) is not None:
        existing_folder(url)
    opened = open_store(url, collection=None, period_s=None, read_only=True)
    try:
        yield opened
    finally:
        opened.close()


def existing_folder(url: str) -> Path:
    """The folder of an embedded store; InputError when there is none, so that looking never makes one."""
    folder = folder_of(url)
    if folder is None and is_shared(url):
        raise InputError("--store: a store on a server has no folder, which this command needs (it has for rocksdb://)")
    if folder is None:
        raise InputError(
            f"--store {url!r}: nothing to look at (use rocksdb:///absolute/folder or rocksdb://relative/folder)"
        )
    if (folder / "valkey").is_dir() and not (folder / "db").is_dir() and not is_shared(url):
        raise InputError(f"--store {url!r}: the store there is one for many ants; give --store valkey://{folder}")
    if not folder.is_dir():
        raise InputError(f"--store {url!r}: there is no folder {folder} (`webfountain crawl` or `demo` makes one)")
    return folder


def inbox_folder(folder: Path) -> Path:
    """Where notes to the crawl of a store go."""
    from webfountain.frontier.inbox import FOLDER  # noqa: PLC0415

    return folder / FOLDER


def repository_folder(store_url: str, given: str | None) -> Path:
    """The folder of copies: the one given, else the store's own."""
    if given is not None:
        return Path(given)
    if folder_of(store_url) is None and is_shared(store_url):
        raise InputError("--repository: a store on a server has no folder for copies; name theirs")
    return existing_folder(store_url) / "repository"


@contextlib.contextmanager
def copies(store_url: str, given: str | None, *, places: Mapping[int, str] | None = None) -> Iterator[Pages]:
    """The repository, opened for reading; `places` says where the copies of ants elsewhere are."""
    from webfountain.repository import Pages  # noqa: PLC0415  parsers that `status` does not need

    opened = Pages(repository_folder(store_url, given), places=places)
    try:
        yield opened
    finally:
        opened.close()


def time_of(text: str) -> float:
    """UTC seconds from a number, or from an ISO date or time (UTC unless it says otherwise)."""
    with contextlib.suppress(ValueError):
        return float(text)
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time (allowed: UTC seconds, 2026-01-31 or 2026-01-31T12:00)") from None
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


def since_of(text: str | None) -> str | float | None:
    """What `--since` says: a cursor of the change log, or a time in UTC seconds."""
    return text if text is None or is_cursor(text) else time_of(text)


def places_of(opened: FrontierStore) -> dict[int, str]:
    """Where each ant of a crawl of many keeps its copies: machine and folder."""
    found = [] if opened.claims is None else opened.claims.claims("repository")
    return {int(claim.name.partition("/")[2]): claim.owner for claim in found}


def cursor_of(opened: FrontierStore, since: str | float | None) -> str | None:
    """The cursor that `--since` is, or that stands before what came at that time. CursorLost: that is too long ago."""
    return opened.changes_from(since) if isinstance(since, float) else since


def spell_time(at: float | None) -> str:
    """A time for people; "-" when there is none."""
    return "-" if at is None else datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def print_json(document: object) -> None:
    """One JSON document, indented."""
    encoded = msgspec.json.encode(document, enc_hook=_plain)
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def print_json_lines(rows: Iterable[object]) -> None:
    """One JSON document a line, as they come."""
    encoder = msgspec.json.Encoder()
    for row in rows:
        sys.stdout.buffer.write(encoder.encode(row) + b"\n")
    sys.stdout.buffer.flush()


def print_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Callable[[Mapping[str, Any]], str]]) -> int:
    """Rows as text columns, two blanks apart, widths by the first screenful; how many rows were printed.

    What cells hold comes from strangers: nothing in them moves the terminal's cursor.

    Parameters
    ----------
    columns : heading -> the text of a row; a heading that begins with ">" is set right
    """
    pending: list[list[str]] = [[name.lstrip(">") for name in columns]]
    right = [name.startswith(">") for name in columns]
    widths: list[int] | None = None
    count = 0
    for row in rows:
        count += 1
        pending.append([shown(text(row)) for text in columns.values()])
        if len(pending) >= 200:
            widths = _print_rows(pending, right, widths)
            pending = []
    _print_rows(pending, right, widths)
    return count


def _plain(value: Any) -> object:
    """A numpy number as Python's."""
    return value.item()


def _print_rows(rows: list[list[str]], right: list[bool], widths: list[int] | None) -> list[int]:
    found = widths or [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.rjust(size) if side else text.ljust(size) for text, size, side in zip(row, found, right, strict=True)
        ]
        print("  ".join(cells).rstrip())
    return found
