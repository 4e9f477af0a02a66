"""The Parquet form of a store's rows.

The fields of pages are columns, named as in `PageRecord`. Every other row is JSON in one column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError
from webfountain.records import PageRecord
from webfountain.store.transfer_lines import line_of, row_of
from webfountain.store.transfer_rows import End, Page, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from webfountain.store.transfer_rows import Row

__all__ = ["read_parquet", "write_parquet"]

_GROUP: Final = 20_000
"""Number of rows in a row group, which is in memory at a time."""
_FIELDS: Final = msgspec.structs.fields(PageRecord)
_NAMES: Final = tuple(each.name for each in _FIELDS)
_COPY: Final = _NAMES.index("copy")
_SCORES: Final = _NAMES.index("scores")
_json = msgspec.json.Encoder()


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


def write_parquet(file: Path, rows: Iterable[Row]) -> End:
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
                group.append((tag, getattr(row, "site", None), None, None, *nothing, line_of(row).decode()))
            if len(group) == _GROUP:
                write()
        group.append(("end", None, None, None, *nothing, _json.encode(tally.end()).decode()))
        write()
    return tally.end()


def read_parquet(file: Path) -> Iterator[Row | End]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(file) as source:
            schema = _schema()
            number = 0
            for batch in source.iter_batches(_GROUP):
                if not {"row", "site", "key", "arrival", "json", "url"} <= set(batch.schema.names):
                    raise InputError(f"{file}: is no exported store")
                # A field that a later version added has its default in an older file.
                columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name in schema.names}
                missing = {each.name: [each.default] * len(batch) for each in _FIELDS if each.name not in columns}
                records = zip(*[(columns | missing)[name] for name in _NAMES], strict=True)
                for kind, site, key, arrival, text, cells in zip(
                    *[columns[name] for name in ("row", "site", "key", "arrival", "json")], records, strict=True
                ):
                    number += 1
                    yield _page(site, key, arrival, cells) if kind == "page" else row_of(text, file, number)
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
