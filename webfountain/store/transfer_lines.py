"""The JSON lines of a store's rows: fields have the names of `PageRecord`, and fields with default values are
omitted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError
from webfountain.records import PageRecord
from webfountain.store.transfer_rows import (
    CensusEntry,
    ChangeEntry,
    End,
    ForgottenKey,
    Head,
    Page,
    Part,
    Site,
    Tally,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from webfountain.store.transfer_rows import Row

__all__ = ["line_of", "read_lines", "row_of", "write_lines"]

_GROUP: Final = 20_000
"""Number of lines per write."""
_FIELDS: Final = msgspec.structs.fields(PageRecord)
_Line: Any = msgspec.defstruct(
    "_Line",
    [
        ("site", str),
        ("key", bytes),
        ("arrival", int | None, None),
        *(
            (each.name, each.type, each.default) if each.name != "url" else (each.name, each.type, "")
            for each in _FIELDS
        ),
    ],
    tag="page",
    tag_field="row",
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
)
_json = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder()


class _PackedRow(msgspec.Struct, frozen=True, tag="packed", tag_field="row"):
    """A row with an infinite number, stored as msgpack because JSON has no infinity."""

    packed: bytes


_read_line = msgspec.json.Decoder[Any](
    Head | Value | CensusEntry | ForgottenKey | Site | Part | ChangeEntry | End | _PackedRow | _Line
)
_read_packed = msgspec.msgpack.Decoder[Any](
    Head | Value | CensusEntry | ForgottenKey | Site | Part | ChangeEntry | _PackedRow | _Line
)


def write_lines(file: Path, rows: Iterable[Row]) -> End:
    tally = Tally()
    with file.open("wb") as out:
        lines: list[bytes] = []
        for row in tally.over(rows):
            lines.append(line_of(row))
            if len(lines) == _GROUP:
                out.write(b"\n".join(lines) + b"\n")
                lines = []
        lines.append(_json.encode(tally.end()))
        out.write(b"\n".join(lines) + b"\n")
    return tally.end()


def read_lines(file: Path) -> Iterator[Row | End]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield row_of(line, file, number)


def line_of(row: Row) -> bytes:
    if isinstance(row, Page):
        record = row.record
        line = _Line(row.site, row.key, row.arrival, *msgspec.structs.astuple(record))
        if math.isfinite(record.importance + record.first_seen + (record.due or 0.0) + sum(record.scores)):
            return _json.encode(line)
        return _json.encode(_PackedRow(_pack.encode(line)))
    if isinstance(row, Site) and not math.isfinite(row.due + row.state.next_at):
        return _json.encode(_PackedRow(_pack.encode(row)))
    return _json.encode(row)


def row_of(line: bytes | str, file: Path, number: int) -> Row | End:
    try:
        found = _read_line.decode(line)
        if isinstance(found, _PackedRow):
            found = _read_packed.decode(found.packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: row {number}: {error}") from None
    if isinstance(found, _Line):
        site, key, arrival, *record = msgspec.structs.astuple(found)
        return Page(site, key, PageRecord(*record), arrival)
    row: Row | End = found
    return row
