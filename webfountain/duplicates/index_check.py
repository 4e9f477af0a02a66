"""Check an index of duplicates for ``webfountain check``, which removes a damaged index.

A record must have the fingerprint of its URL. A run must be sorted and refer only to existing records.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.duplicates.key_runs import ENTRY_BYTES, map_run, read_state
from webfountain.duplicates.page_records import RECORD, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["damaged_index", "mend_index"]

_AT_ONCE: Final = 100_000
"""Number of records that are read at once."""


def damaged_index(folder: Path) -> list[str]:
    """Read a whole index, and return a line for each damaged file. Raises OSError if the disk reports an error."""
    if not (folder / "FORM").exists() and not (folder / "records").exists():
        return []
    return [f"{folder}: damaged: {why}" for why in (*_records(folder), *_runs(folder))]


def mend_index(folder: Path) -> list[str]:
    """Remove a damaged index, and return a line for each damaged file. No crawl may have the index open."""
    found = damaged_index(folder)
    if found:
        for path in (folder / "INDEX", folder / "FORM", *folder.glob("run-*"), folder / "records", folder / "urls"):
            with suppress(FileNotFoundError):
                path.unlink()
    return found


def _records(folder: Path) -> Iterator[str]:
    """Yield a line for each record that does not match its URL."""
    lines = _bytes(folder / "urls")
    data = _bytes(folder / "records")
    wrong = 0
    whole = len(data) // RECORD.itemsize
    for first in range(0, whole, _AT_ONCE):
        many = min(_AT_ONCE, whole - first)
        records = np.frombuffer(data, dtype=RECORD, count=many, offset=first * RECORD.itemsize)
        for page, at in zip(records["page"].tolist(), records["url"].tolist(), strict=True):
            end = lines.find(b"\n", at) if at < len(lines) else -1
            wrong += end < 0 or number_of(lines[at:end].decode("utf-8", "replace")) != page
    if wrong:
        yield f"{wrong} of {whole} records do not match their URLs"


def _runs(folder: Path) -> Iterator[str]:
    """Yield a line for each damaged run that `INDEX` lists."""
    try:
        index = read_state(folder)
    except FileNotFoundError:
        return
    except (ValueError, msgspec.MsgspecError) as error:
        yield f"INDEX: {' '.join(str(error).split())[:100]}"
        return
    size = (folder / "records").stat().st_size // RECORD.itemsize if (folder / "records").exists() else 0
    if index.records > size:
        yield f"INDEX: it lists {index.records} records, but there are {size}"
    for name in index.runs:
        path = folder / name
        length = path.stat().st_size if path.exists() else 0
        if not length or length % ENTRY_BYTES:
            yield f"{name}: it is gone or cut"
            continue
        run = map_run(path)
        if (run.keys[1:] < run.keys[:-1]).any() or (run.numbers >= max(size, 1)).any():
            yield f"{name}: its keys are not sorted, or refer to no record"


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
