"""The file of an exported store: JSON lines, or Parquet if its name ends in ``.parquet``.

The first row names store and collection. The last row confirms that the file is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.errors import InputError
from webfountain.private_files import draft_of
from webfountain.store.transfer_lines import read_lines, write_lines
from webfountain.store.transfer_parquet import read_parquet, write_parquet
from webfountain.store.transfer_rows import FORMAT, End, Head, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from webfountain.store.transfer_rows import Row

__all__ = ["read_rows", "write_rows"]


def write_rows(file: Path, rows: Iterable[Row]) -> End:
    """Write a store's rows to a file: Parquet if the name ends in ``.parquet``, else JSON lines. Return their counts.

    The file appears completely or not at all. An existing file is replaced.

    Raises
    ------
    InputError
        if the file cannot be written.
    """
    try:
        with draft_of(file) as draft:
            return write_parquet(draft, rows) if file.suffix == ".parquet" else write_lines(draft, rows)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror or error})") from None


def read_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a file that `write_rows` made.

    Raises
    ------
    InputError
        if there is no such file, it has another format, or it was cut short; the message names the place.
    """
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    rows = _without_traceback(read_parquet(file) if file.suffix == ".parquet" else read_lines(file), file)
    tally, end = Tally(), None
    for number, row in enumerate(tally.over(rows)):
        if (number == 0) != isinstance(row, Head):
            raise InputError(f"{file}: is no exported store (exactly one row, the first, must describe the store)")
        if isinstance(row, Head) and row.format != FORMAT:
            raise InputError(f"{file}: has format {row.format}, this version reads {FORMAT}")
        if end is not None:
            raise InputError(f"{file}: has rows after its end")
        if isinstance(row, End):
            end = row
            continue
        yield row
    if end is None or end != tally.end():
        raise InputError(f"{file}: was cut short; nothing is imported")


def _without_traceback(rows: Iterator[Row | End], file: Path) -> Iterator[Row | End]:
    """Report any error in the content of a file in one line, because a library may raise many kinds."""
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
