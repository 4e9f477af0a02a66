"""The command `duplicates export`: signatures of texts, for programs that find duplicates across collections."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webfountain.commands import options, printing
from webfountain.commands.file_owners import require_writable_folder
from webfountain.errors import InputError, RepositoryError
from webfountain.report.plurals import counted
from webfountain.report.signatures import signatures, write_signatures
from webfountain.report.store_reading import copies, places_of, reading

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["duplicates", "export_signatures"]

_EXAMPLE = """Example: webfountain duplicates export news.parquet --store rocksdb://news

\b
To find pairs across two collections with datasketch:
    import pyarrow.parquet as pq
    from datasketch import MinHash, MinHashLSH

\b
    index = MinHashLSH(threshold=0.8, num_perm=128)
    for row in pq.read_table("news.parquet").to_pylist():
        index.insert(row["url"], MinHash(hashvalues=row["minhash"], scheme="affine32"))
    for row in pq.read_table("docs.parquet").to_pylist():
        print(row["url"], index.query(MinHash(hashvalues=row["minhash"], scheme="affine32")))
"""


@click.group()
def duplicates() -> None:
    """Export signatures of texts."""


@duplicates.command("export", epilog=_EXAMPLE)
@click.argument("file", metavar="FILE")
@options.store
@options.repository
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options.as_json
def export_signatures(file: str, store: str, repository: str | None, force: bool, as_json: bool) -> None:
    """Write the signature of each page's text to FILE, in Parquet: url, fetched, minhash.

    A signature is a datasketch MinHash of all sequences of four words: 128 numbers, seed 1, scheme affine32. Signatures
    of different collections can be compared. A crawl may run at the same time.
    """
    path = Path(file)
    if os.path.lexists(path) and (path.is_dir() or not force):
        raise InputError(f"{file}: exists already" + (", a folder" if path.is_dir() else "; --force replaces it"))
    require_writable_folder(path, name=file)
    lost: list[RepositoryError] = []
    with reading(store) as opened, copies(store, repository, places=places_of(opened)) as kept:
        pages = write_signatures(path, signatures(opened, kept, unreadable=lost.append))
    if as_json:
        printing.print_json({"file": file, "pages": pages, "unreadable": len(lost)})
    else:
        print(f"{file} contains the signatures of {counted(pages, 'page')}")
    if lost:
        raise RepositoryError(_unreadable(lost))


def _unreadable(lost: Sequence[RepositoryError]) -> str:
    return (
        f"{counted(len(lost), 'copy')} cannot be read here (the first: {lost[0]}); "
        "`webfountain check --repair` makes pages with damaged copies due"
    )
