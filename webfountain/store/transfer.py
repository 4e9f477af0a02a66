"""A whole frontier as rows, and rows as a file: how a store moves to another one, of any kind or format.

`FrontierStore.rows` gives what a store holds, `load_store` makes a new store of it. The rows are the store's own words
(URLs with their histories, importances, trust and turns, sites with what was learned of them, census, change log,
published values such as the plan, what was forgotten) and no store's bytes, so they are also the way into a
new format. What belongs to a process (leases, counts of lost steps) stays behind: a leased URL stands in its place,
an active site is due.

A file is JSON lines, or Parquet where its name ends so: the first row names store and collection, the last says that
it is whole. Pages are columns there, named as in `PageRecord`; everything else is JSON in one column.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from webfountain.errors import InputError, StoreError
from webfountain.records import Change, PageRecord, SiteState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = [
    "Barred",
    "Counted",
    "End",
    "Head",
    "Logged",
    "Page",
    "Part",
    "Row",
    "Site",
    "Tally",
    "Value",
    "head_of",
    "read_rows",
    "write_rows",
]

FORMAT: Final = 1
_GROUP: Final = 20_000
"""Rows of a Parquet row group, and lines that are written at once: what is in memory at a time."""


class Head(msgspec.Struct, frozen=True, tag="store", tag_field="row"):
    """What a store says of itself. `log` names its change log, of which `dropped` entries went."""

    collection: str
    period_s: float
    fastest_s: float
    log: str
    dropped: int = 0
    format: int = FORMAT


class Value(msgspec.Struct, frozen=True, tag="value", tag_field="row"):
    """A published value (`Board`)."""

    name: str
    value: bytes


class Counted(msgspec.Struct, frozen=True, tag="census", tag_field="row"):
    """A census row as it is counted: fetches, changes, seconds, links, births, milliseconds watched."""

    period: int
    bucket: int | None
    counts: tuple[float, ...]


class Barred(msgspec.Struct, frozen=True, tag="barred", tag_field="row"):
    """A page that was forgotten, or with no key a whole site."""

    site: str
    key: bytes | None = None


class Site(msgspec.Struct, frozen=True, tag="site", tag_field="row"):
    """A site; its pages follow. `regrading`: epoch that is being brought in, class and arrival that it has come to."""

    site: str
    first_seen: float
    due: float
    state: SiteState = SiteState()
    epoch: int = 0
    learned: bytes = b""
    regrading: tuple[int, int, int] | None = None


class Part(msgspec.Struct, frozen=True, tag="part", tag_field="row"):
    """What is kept of the site before it under a number (`UrlQueues.settle`)."""

    site: str
    number: int
    part: bytes


class Page(msgspec.Struct, frozen=True, gc=False):
    """A page of the site before it. `arrival`: its turn in the never-crawled queue, where it stands there."""

    site: str
    key: bytes
    record: PageRecord
    arrival: int | None = None


class Logged(msgspec.Struct, frozen=True, tag="change", tag_field="row"):
    """An entry of the change log, in order."""

    change: Change


class End(msgspec.Struct, frozen=True, tag="end", tag_field="row"):
    """The file is whole: so many sites, pages and entries of the change log."""

    sites: int
    pages: int
    changes: int


Row = Head | Value | Counted | Barred | Site | Part | Page | Logged
"""In this order: head, values, census, what is barred, each site, its parts and its pages, the change log."""


class _Packed(msgspec.Struct, frozen=True, tag="packed", tag_field="row"):
    """A row with an infinite number, which JSON has not: as msgpack."""

    packed: bytes


_R = TypeVar("_R")


class Tally:
    """Counts rows as they pass."""

    def __init__(self) -> None:
        self._found: dict[type, int] = {Site: 0, Page: 0, Logged: 0}

    def over(self, rows: Iterable[_R]) -> Iterator[_R]:
        """The rows, counted."""
        found = self._found
        for row in rows:
            kind = type(row)
            if kind in found:
                found[kind] += 1
            yield row

    def end(self) -> End:
        """What passed."""
        return End(*self._found.values())


_FIELDS: Final = msgspec.structs.fields(PageRecord)
# Named fields in the file, though a record is an array where it is kept; a field at its default is left out.
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
_NAMES: Final = tuple(each.name for each in _FIELDS)
_json = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder()
_Rows: Any = Head | Value | Counted | Barred | Site | Part | Logged | End | _Packed | _Line
_read_line = msgspec.json.Decoder(_Rows)
_read_packed = msgspec.msgpack.Decoder(_Rows)


def write_rows(file: Path, rows: Iterable[Row]) -> End:
    """Write a store's rows to a file: Parquet where the name ends in ``.parquet``, else JSON lines. Says how many.

    The file appears whole or not at all; one that is there is replaced.
    """
    draft = file.with_name(f".{file.name}.part")
    try:
        end = _write_parquet(draft, rows) if file.suffix == ".parquet" else _write_lines(draft, rows)
        draft.replace(file)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return end


def read_rows(file: Path) -> Iterator[Row]:
    """The rows of a file that `write_rows` made.

    Raises
    ------
    InputError
        when the file is none, is of another format, or was cut short: the line names the place.
    """
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    rows = _read_parquet(file) if file.suffix == ".parquet" else _read_lines(file)
    tally, end = Tally(), None
    for number, row in enumerate(tally.over(rows)):
        if (number == 0) != isinstance(row, Head):
            raise InputError(f"{file}: is no exported store (its first row, and no other, says what it holds)")
        if isinstance(row, Head) and row.format != FORMAT:
            raise InputError(f"{file}: has format {row.format}, this version reads {FORMAT}")
        if end is not None:
            raise InputError(f"{file}: goes on after its end")
        if isinstance(row, End):
            end = row
            continue
        yield row
    if end is None or end != tally.end():
        raise InputError(f"{file}: was cut short; nothing of it is taken in")


# ---------------------------------------------------------------------- JSON lines


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
        return _json.encode(_Packed(_pack.encode(line)))
    if isinstance(row, Site) and not math.isfinite(row.due + row.state.next_at):
        return _json.encode(_Packed(_pack.encode(row)))
    return _json.encode(row)


def _row_of(line: bytes | str, file: Path, number: int) -> Row | End:
    try:
        found = _read_line.decode(line)
        if isinstance(found, _Packed):
            found = _read_packed.decode(found.packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: row {number}: {error}") from None
    if isinstance(found, _Line):
        site, key, arrival, *record = msgspec.structs.astuple(found)
        return Page(site, key, PageRecord(*record), arrival)
    row: Row | End = found
    return row


# ------------------------------------------------------------------------- Parquet


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
                    raise InputError(f"{file}: is no exported store")
                # A field that a later version added is at its default in an older file.
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


_COPY: Final = _NAMES.index("copy")
_SCORES: Final = _NAMES.index("scores")


def _page(site: str, key: bytes, arrival: int | None, cells: tuple[Any, ...]) -> Page:
    record = list(cells)
    if record[_COPY] is not None:
        record[_COPY] = list(record[_COPY].values())
    record[_SCORES] = record[_SCORES] or ()
    return Page(site, key, msgspec.convert(record, PageRecord), arrival)


def head_of(rows: Iterator[Row]) -> Head:
    """The first row, which says what the others are of."""
    head = next(rows, None)
    if not isinstance(head, Head):
        raise StoreError("the rows of a store begin with what it says of itself")
    return head
