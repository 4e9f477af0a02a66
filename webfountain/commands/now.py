"""The command `now`: put URLs on the immediate queue, even of a running crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.commands.left_notes import gone_soon, leave
from webfountain.errors import InputError
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import NowNote
from webfountain.report.plurals import counted
from webfountain.report.store_reading import existing_folder, inbox_folder, reading
from webfountain.store.contract import COLLECTION
from webfountain.store.locations import is_held, is_shared
from webfountain.urls import canonical

if TYPE_CHECKING:
    from webfountain.store.contract import FrontierStore

__all__ = ["now"]


@click.command(epilog="Example: webfountain now https://example.org/news --store rocksdb://news")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@options.store
@options.as_json
def now(urls: tuple[str, ...], store: str, as_json: bool) -> None:
    """Put URLs on the immediate queue, even of a running crawl.

    A running crawl takes them within a second; otherwise the next crawl does. Politeness and robots.txt apply to them
    too.
    """
    note = NowNote(tuple(canonical(url) for url in urls))
    if is_shared(store):
        with reading(store) as opened:
            _require_scope(opened, note)
            taken = leave(opened, note)
    else:
        folder = existing_folder(store)
        if (folder / "db").is_dir():
            with reading(store) as opened:
                _require_scope(opened, note)
        path = Inbox(inbox_folder(folder)).put(note)
        taken = is_held(folder) and gone_soon(path.exists)
    if as_json:
        printing.print_json({"urls": note.urls, "taken": taken})
    else:
        waits = "in the crawl's immediate queue" if taken else "waiting for the next crawl of this store"
        print(f"{counted(len(note.urls), 'URL')} {'is' if len(note.urls) == 1 else 'are'} {waits}")


def _require_scope(store: FrontierStore, note: NowNote) -> None:
    """Raise InputError for a URL that the policy file refuses, because a crawl would only drop it."""
    if store.board.value(COLLECTION) is None:
        return  # the store of another project, which may request any URL
    from webfountain.report.explain import collection_of, refusal_of  # noqa: PLC0415  numpy, 0.1 s

    collection = collection_of(store)
    for url in note.urls:
        if (why := refusal_of(store, collection, url, at=SystemClock().now())) is not None:
            raise InputError(f"{url} is not crawled: {why}")
