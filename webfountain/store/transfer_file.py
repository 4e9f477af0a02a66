"""The file of an exported store: JSON lines, or Parquet if its name ends in ``.parquet``.

The first row describes the store. The last row confirms that the file is complete. In JSON lines, fields have the names
of `PageRecord`, and fields with default values are omitted. In Parquet, each field of a page is a column with the
field's name, and every other row is JSON in one column.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError
from webfountain.private_files import draft_of
from webfountain.records import PageRecord
from webfountain.store.transfer_rows import (
    FORMAT,
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

__all__ = ["read_rows", "write_rows"]

_GROUP: Final = 20_000
"""Number of rows per write."""
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
_NAMES: Final = tuple(each.name for each in _FIELDS)
_COPY: Final = _NAMES.index("copy")
_SCORES: Final = _NAMES.index("scores")


class _PackedRow(msgspec.Struct, frozen=True, tag="packed", tag_field="row"):
    """A row with an infinite number, stored as msgpack because JSON has no infinity."""

    packed: bytes


_read_line = msgspec.json.Decoder[Any](
    Head | Value | CensusEntry | ForgottenKey | Site | Part | ChangeEntry | End | _PackedRow | _Line
)
_read_packed = msgspec.msgpack.Decoder[Any](
    Head | Value | CensusEntry | ForgottenKey | Site | Part | ChangeEntry | _PackedRow | _Line
)


def _write_lines(file: Path, rows: Iterable[Row]) -> End:
    tally = Tally()
    with file.open("wb") as out:
        lines: list[bytes] = []
        for row in tally.over(rows):
            lines.append(_line_of(row))
            if len(lines) == _GROUP:
                out.write(b"\n".join(lines) + b"\n")
                lines = []
        lines.append(_json.encode(tally.end()))
        out.write(b"\n".join(lines) + b"\n")
    return tally.end()


def _read_lines(file: Path) -> Iterator[Row | End]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield _row_of(line, file, number)


def _line_of(row: Row) -> bytes:
    if isinstance(row, Page):
        record = row.record
        line = _Line(row.site, row.key, row.arrival, *msgspec.structs.astuple(record))
        if math.isfinite(record.importance + record.first_seen + (record.due or 0.0) + sum(record.scores)):
            return _json.encode(line)
        return _json.encode(_PackedRow(_pack.encode(line)))
    if isinstance(row, Site) and not math.isfinite(row.due + row.state.next_at):
        return _json.encode(_PackedRow(_pack.encode(row)))
    return _json.encode(row)


def _row_of(line: bytes | str, file: Path, number: int) -> Row | End:
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


def _schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415  0.1 s that JSON lines do not need

    number, time, text, raw = pa.int64(), pa.float64(), pa.string(), pa.binary()
    copy = pa.struct([(name, number) for name in ("file", "offset", "length", "repository")])
    kinds: dict[str, Any] = {"copy": copy, "scores": pa.list_(time)}
    by_type = {str: text, int: number, float: time, bytes: raw}
    for each in _FIELDS:
        kinds.setdefault(each.name, next((kind for of, kind in by_type.items() if _holds(each.type, of)), text))
    head = [("row", text), ("site", text), ("key", raw), ("arrival", number)]
    return pa.schema([*head, *kinds.items(), ("json", text)])


def _holds(kind: Any, of: type) -> bool:
    return kind is of or of in getattr(kind, "__args__", ())


def _write_parquet(file: Path, rows: Iterable[Row]) -> End:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    schema = _schema()
    names = [name for name in schema.names if name not in {"row", "site", "key", "arrival", "json"}]
    where = [_NAMES.index(name) for name in names]
    tally = Tally()
    with parquet.ParquetWriter(file, schema, compression="zstd") as out:
        group: list[tuple[Any, ...]] = []

        def write() -> None:
            columns = list(zip(*group, strict=True))
            arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
            out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            group.clear()

        nothing, copy_at = (None,) * len(names), names.index("copy")
        for row in tally.over(rows):
            if isinstance(row, Page):
                record = msgspec.structs.astuple(row.record)
                cells = [record[i] for i in where]
                if row.record.copy is not None:
                    cells[copy_at] = msgspec.structs.asdict(row.record.copy)
                group.append(("page", row.site, row.key, row.arrival, *cells, None))
            else:
                tag = type(row).__struct_config__.tag
                group.append((tag, getattr(row, "site", None), None, None, *nothing, _line_of(row).decode()))
            if len(group) == _GROUP:
                write()
        group.append(("end", None, None, None, *nothing, _json.encode(tally.end()).decode()))
        write()
    return tally.end()


def _read_parquet(file: Path) -> Iterator[Row | End]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(file) as source:
            schema = _schema()
            number = 0
            for batch in source.iter_batches(_GROUP):
                if not {"row", "site", "key", "arrival", "json", "url"} <= set(batch.schema.names):
                    raise InputError(f"{file} is not an exported store")
                # An older file lacks the fields that later versions added; they get their defaults.
                columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name in schema.names}
                missing = {each.name: [each.default] * len(batch) for each in _FIELDS if each.name not in columns}
                records = zip(*[(columns | missing)[name] for name in _NAMES], strict=True)
                for kind, site, key, arrival, text, cells in zip(
                    *[columns[name] for name in ("row", "site", "key", "arrival", "json")], records, strict=True
                ):
                    number += 1
                    yield _page(site, key, arrival, cells) if kind == "page" else _row_of(text, file, number)
    except (pa.ArrowException, OSError, msgspec.ValidationError) as error:
        raise InputError(f"{file}: cannot be read ({str(error).splitlines()[0]})") from None


def _page(site: str, key: bytes, arrival: int | None, cells: tuple[Any, ...]) -> Page:
    if not isinstance(site, str) or not isinstance(key, bytes) or not isinstance(arrival, int | None):
        raise TypeError("a page has a site, a key and perhaps an arrival")
    record = list(cells)
    if record[_COPY] is not None:
        record[_COPY] = list(record[_COPY].values())
    record[_SCORES] = record[_SCORES] or ()
    return Page(site, key, msgspec.convert(record, PageRecord), arrival)


def write_rows(file: Path, rows: Iterable[Row]) -> End:
    """Write a store's rows to a file: Parquet if its name ends in ``.parquet``, else JSON lines. Return the number of
    rows of each kind.

    The file appears completely or not at all, in place of an existing file.

    Raises
    ------
    InputError
        if the file cannot be written.
    """
    try:
        with draft_of(file) as draft:
            return _write_parquet(draft, rows) if file.suffix == ".parquet" else _write_lines(draft, rows)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror or error})") from None


def read_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a file that `write_rows` wrote.

    Raises
    ------
    InputError
        if the file does not exist, has another format or was cut short; the message names the place.
    """
    if not file.is_file():
        raise InputError(f"{file} is not a file" if file.exists() else f"{file}: there is no such file")
    rows = _without_traceback(_read_parquet(file) if file.suffix == ".parquet" else _read_lines(file), file)
    tally, end = Tally(), None
    for number, row in enumerate(tally.over(rows)):
        if (number == 0) != isinstance(row, Head):
            raise InputError(f"{file} is not an exported store (exactly one row, the first, must describe the store)")
        if isinstance(row, Head) and row.format != FORMAT:
            raise InputError(f"{file} has format {row.format}, this version reads {FORMAT}")
        if end is not None:
            raise InputError(f"{file}: rows follow the row that should be the last")
        if isinstance(row, End):
            end = row
            continue
        yield row
    if end is None or end != tally.end():
        raise InputError(f"{file} was cut short; nothing is imported")


def _without_traceback(rows: Iterator[Row | End], file: Path) -> Iterator[Row | End]:
    """Yield rows, and turn any library's exception for bad content into an InputError of one line."""
    number = 0
    try:
        for row in rows:
            number += 1
            yield row
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"{file}: row {number + 1}: cannot be read ({why:.200})") from None
