"""The commands `export` and `import`: write a store to a file, and make a new store from such a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webfountain.commands import options, printing
from webfountain.commands.file_owners import require_writable_folder
from webfountain.errors import InputError
from webfountain.report.plurals import counted
from webfountain.report.store_reading import reading
from webfountain.store.locations import without_password
from webfountain.store.opening import load_store
from webfountain.store.row_check import checked
from webfountain.store.transfer_file import read_rows, write_rows
from webfountain.store.transfer_rows import Tally

if TYPE_CHECKING:
    from webfountain.store.transfer_rows import End

__all__ = ["export", "import_"]


@click.command(epilog="Example: webfountain export frontier.parquet --store rocksdb://news")
@click.argument("file", metavar="FILE")
@options.store
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options.as_json
def export(file: str, store: str, force: bool, as_json: bool) -> None:
    """Write the whole content of a store to FILE: as Parquet if the name ends in .parquet, else as JSON lines.

    The file contains URLs with their histories, importance and place in the queue, sites, census, plan, change log,
    and what was forgotten. It does not contain the copies, which are in the repository. A crawl may be running; the
    file shows the state at one moment.
    """
    path = Path(file)
    if os.path.lexists(path) and (path.is_dir() or not force):
        raise InputError(f"{file}: exists already" + (", a folder" if path.is_dir() else "; --force replaces it"))
    require_writable_folder(path, name=file)
    with reading(store) as opened:
        end = write_rows(path, opened.rows())
    _print_moved(file, end, as_json, f"{without_password(store)} is in {file}")


@click.command(name="import", epilog="Example: webfountain import frontier.parquet --store redis://localhost:6379/0")
@click.argument("file", metavar="FILE")
@options.store
@options.as_json
def import_(file: str, store: str, as_json: bool) -> None:
    """Make a new store, of any kind, from what `export` wrote. An existing store is never changed.

    The whole file is read and checked before anything is written.
    """
    tally, path = Tally(), Path(file)
    for _ in checked(read_rows(path), path):
        pass
    load_store(store, tally.over(checked(read_rows(path), path)))
    _print_moved(file, tally.end(), as_json, f"{file} is in {without_password(store)}")


def _print_moved(file: str, end: End, as_json: bool, sentence: str) -> None:
    if as_json:
        printing.print_json({"file": file, "sites": end.sites, "pages": end.pages, "changes": end.changes})
    else:
        held = f"{counted(end.pages, 'URL')} on {counted(end.sites, 'site')}"
        print(f"{sentence}: {held}, {counted(end.changes, 'entry of the change log')}")
