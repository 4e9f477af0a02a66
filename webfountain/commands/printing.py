"""Print the output of commands: JSON, JSON lines, tables, times."""

from __future__ import annotations

import datetime
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from webfountain.terminal_text import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webfountain.api.answers import NoteAnswer

__all__ = ["print_json", "print_json_lines", "print_note", "print_table", "spell_time"]

_T = TypeVar("_T")


def spell_time(at: float | None) -> str:
    """Return a time for people, or "-" if there is none."""
    return "-" if at is None else datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def print_json(document: object) -> None:
    encoded = msgspec.json.encode(document, enc_hook=_plain)
    sys.stdout.write(escaped(msgspec.json.format(encoded, indent=2).decode()) + "\n")


def print_json_lines(rows: Iterable[object]) -> None:
    """Print each row as one line of JSON, as soon as the row is available."""
    encoder = msgspec.json.Encoder()
    is_terminal = sys.stdout.isatty()
    for row in rows:
        line = encoder.encode(row)
        sys.stdout.buffer.write((escaped(line.decode()).encode() if is_terminal else line) + b"\n")
    sys.stdout.buffer.flush()


def print_note(answer: NoteAnswer, *, as_json: bool) -> None:
    """Print the answer to a request to the crawl, as JSON or as a sentence."""
    if as_json:
        print_json(answer)
    else:
        print(shown(f"the note `{' '.join([answer.note, *answer.accepted])}` waits for the next crawl of this store"))


def print_table(rows: Iterable[_T], columns: Mapping[str, Callable[[_T], str]]) -> int:
    """Print rows as text columns, and return the number of rows.

    The first 200 rows decide how wide each column is.

    Cells may contain untrusted text, so control characters of the terminal are replaced.

    Parameters
    ----------
    columns : heading -> function that returns the cell of a row; ">" before a heading aligns the column right
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
    """Return a numpy number as a Python number."""
    return value.item()


def _print_rows(rows: list[list[str]], right: list[bool], widths: list[int] | None) -> list[int]:
    found = widths or [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.rjust(size) if side else text.ljust(size) for text, size, side in zip(row, found, right, strict=True)
        ]
        print("  ".join(cells).rstrip())
    return found
