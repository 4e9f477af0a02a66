"""Full-text search over the copies: the commands `index` and `search`."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from webfountain.api.opening import open_stored
from webfountain.api.search import INDEX_FILE
from webfountain.commands import options, printing
from webfountain.errors import InputError, StoreError
from webfountain.report.plurals import counted
from webfountain.report.store_reading import copies, places_of, reading
from webfountain.store.locations import folder_of
from webfountain.terminal_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.errors import RepositoryError
    from webfountain.search.follower import Follower
    from webfountain.search.search_index import SearchIndex

__all__ = ["index", "search"]

_RETRY_S: Final = 2.0
"""Length of the pause between two attempts to open a store, in seconds."""


@click.command(epilog="Example: webfountain index --store rocksdb://news --follow")
@options.store
@options.repository
@click.option("--follow", is_flag=True, help="Keep the index up to date until Ctrl-C.")
@click.option("--until-stdin-closes", is_flag=True, hidden=True)
def index(store: str, repository: str | None, *, follow: bool, until_stdin_closes: bool) -> None:
    """Make the search index of a collection, or bring it up to date. A crawl may run at the same time. If the command
    was killed, the next call continues the work."""
    folder = folder_of(store)
    if folder is None:
        raise InputError("--store: the index is in the folder of a store; a store on a server has no folder")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if until_stdin_closes:
        threading.Thread(target=_end_with_stdin, args=(ended,), daemon=True).start()
    if follow:
        _follow(store, repository, folder / INDEX_FILE, ended)
        return
    lost: list[RepositoryError] = []
    with _follower(store, repository, folder / INDEX_FILE, lost.append) as (follower, made):
        while follower.catch_up() and not ended.is_set():
            pass
        print(f"{counted(made.state().pages, 'page')} can be searched", file=sys.stderr)
    if lost:
        print(f"webfountain: {counted(len(lost), 'copy')} could not be read: {lost[0]}", file=sys.stderr)


@click.command(epilog='Example: webfountain search --store rocksdb://news "new release" draft*')
@click.argument("words", nargs=-1, required=True)
@options.store
@options.repository
@click.option("--site", metavar="SITE", default="", help="Only pages of this site: scheme://host[:port].")
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="Largest number of results; the best come first.",
)
@options.as_json
def search(words: tuple[str, ...], store: str, repository: str | None, *, site: str, limit: int, as_json: bool) -> None:
    """Search the titles and texts of a collection that has an index (`webfountain index`).

    All words must occur; "words in quotes" must occur in this order; word* stands for all words with this beginning;
    -word must not occur (put it after `--`).
    """
    collection = open_stored(store, repository=None if repository is None else Path(repository))
    try:
        query = " ".join(f'"{word}"' if " " in word else word for word in words)
        found = collection.search.find(query, site=site, limit=limit)
    finally:
        collection.close()
    if as_json:
        printing.print_json(found)
        return
    for each in found.items:
        print(f"{shown(each.url)}\n    {shown(each.title or '')}\n    {shown(each.excerpt or '')}")
    if found.index.behind:
        least = "at least " if found.index.at_least else ""
        print(f"the index lacks {least}{counted(found.index.behind, 'change')}", file=sys.stderr)


@contextlib.contextmanager
def _follower(
    store: str, repository: str | None, path: Path, unreadable: Callable[[RepositoryError], None]
) -> Iterator[tuple[Follower, SearchIndex]]:
    """Open a store, its copies and its search index."""
    from webfountain.search.follower import Follower  # noqa: PLC0415  parsers that other commands do not need
    from webfountain.search.search_index import SearchIndex  # noqa: PLC0415

    with reading(store) as opened, copies(store, repository, places=places_of(opened)) as pages:
        made = SearchIndex(path)
        try:
            yield Follower(opened, pages, made, unreadable=unreadable), made
        finally:
            made.close()


def _follow(store: str, repository: str | None, path: Path, ended: threading.Event) -> None:
    """Keep the index up to date until `ended` is set. If no store exists, wait until there is one. If the store is
    replaced, open the new store."""
    said = ""
    while not ended.is_set():
        try:
            with _follower(store, repository, path, lambda _: None) as (follower, _):
                said = ""
                follower.follow(until=ended.is_set)
        except (InputError, StoreError) as error:
            if str(error) != said:
                print(f"webfountain: the index cannot be updated: {shown(str(error))}", file=sys.stderr, flush=True)
            said = str(error)
            ended.wait(_RETRY_S)


def _end_with_stdin(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()
