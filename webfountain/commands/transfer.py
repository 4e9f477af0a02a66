"""The commands that move what a crawl knows: `export`, `import`, `take-over`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.commands.file_owners import require_writable_folder
from webfountain.config import DEFAULT_STORE
from webfountain.errors import InputError
from webfountain.report.plurals import counted
from webfountain.report.store_reading import reading
from webfountain.store.locations import PRIVATE, is_shared, without_password
from webfountain.store.opening import left_by_scrapy_redis, load_store, open_store
from webfountain.store.transfer_file import read_rows, write_rows
from webfountain.store.transfer_rows import Tally, checked

if TYPE_CHECKING:
    from webfountain.store.transfer_rows import End

__all__ = ["export", "import_", "take_over"]


@click.command(epilog="Example: webfountain export frontier.parquet --store rocksdb://news")
@click.argument("file", metavar="FILE")
@options.store
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options.as_json
def export(file: str, store: str, force: bool, as_json: bool) -> None:
    """Write the whole content of a store to FILE: as Parquet if the name ends in .parquet, else as JSON lines.

    The file contains the URLs with their histories and queues, the sites, the statistics, the plan, the change log, and
    the forgotten URLs. The copies are not in the file; they stay in the repository. A crawl may run at the same time;
    the file shows the state at one moment.
    """
    path = Path(file)
    if file == "-":
        raise InputError("'-' is not a file name (the file appears only when it is complete, so it cannot be a pipe)")
    require_writable_folder(path, name=file)
    if os.path.lexists(path) and not force:
        raise InputError(f"{file}: exists already; --force replaces it")
    with reading(store) as opened:
        end = write_rows(path, opened.rows())
    _print_moved(file, end, as_json, f"{without_password(store)} is in {file}")


@click.command(name="import", epilog="Example: webfountain import frontier.parquet --store redis://localhost:6379/0")
@click.argument("file", metavar="FILE")
@options.store
@options.as_json
def import_(file: str, store: str, as_json: bool) -> None:
    """Make a new store of any kind from a file of `export`. An existing store is never changed.

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


@click.command("take-over", epilog="Example: webfountain take-over redis://localhost:6379/0 myspider")
@click.argument("server")
@click.argument("spider")
@click.option("--project", metavar="BOT_NAME", default="scrapybot", show_default=True, help="BOT_NAME of the project.")
@click.option("--queue", metavar="KEY", help="Key of the queue.  [default: SPIDER:requests]")
@click.option("--dupefilter", metavar="KEY", help="Key of the filter.  [default: SPIDER:dupefilter]")
@click.option("--store", metavar="URL", default=DEFAULT_STORE, help="Store to write to.  [default: one on that server]")
@options.as_json
def take_over(
    *, server: str, spider: str, project: str, queue: str | None, dupefilter: str | None, store: str, as_json: bool
) -> int:
    """Take over the queue and the duplicate filter that scrapy-redis left on SERVER for SPIDER.

    Requests are read as plain data, and no code in them is run. Requests that contain more than data stay in the queue,
    and the exit status is 1. Stop the spider's workers first. A second call takes over the requests that were added
    after the first call.
    """
    from webfountain.crawl.scrapy_redis import take_over as take  # noqa: PLC0415  Scrapy, which other commands do without

    if not is_shared(server) or server.startswith(PRIVATE):
        raise InputError(f"{server} is not a server of scrapy-redis (allowed: redis://host:port/0, rediss://, unix://)")
    url = f"{server.partition('?')[0]}?prefix=webfountain.{spider}" if store == DEFAULT_STORE else store
    names = {"requests": queue or f"{spider}:requests", "dupefilter": dupefilter or f"{spider}:dupefilter"}
    at = SystemClock().now()
    with (
        left_by_scrapy_redis(server, **names) as keys,
        contextlib.closing(
            open_store(url, collection=f"{project}.{spider}", period_s=86_400.0, fastest_s=900.0, at=at)
        ) as opened,
    ):
        done = take(keys, opened, at=at)
    if as_json:
        printing.print_json({**done._asdict(), "store": without_password(url)})
    else:
        print(
            f"{counted(done.requests, 'request')} and {counted(done.fingerprints, 'fingerprint')} were moved "
            f"to {without_password(url)}"
        )
        if done.known:
            print(f"{done.known:,} requests were already known there")
        for why, many in sorted(done.left.items(), key=lambda each: -each[1])[:10]:
            print(f"{many:,} stay in the queue: {why}")
    return 1 if done.left else 0
