"""The commands that send a request to a crawl, even while it runs: `now`, `pause`, `resume`, `block`, `drain`."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.errors import InputError
from webfountain.frontier.inbox.inboxes import FeedInbox, Inbox
from webfountain.frontier.inbox.notes import NowNote
from webfountain.report.plurals import counted
from webfountain.report.store_reading import existing_folder, inbox_folder, policy_in_force, reading
from webfountain.store.locations import is_in_use, is_shared
from webfountain.store.shared_contract import has_ants
from webfountain.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.api.collection import StoredCollection
    from webfountain.frontier.inbox.notes import ForgetNote
    from webfountain.store.contract import FrontierStore

__all__ = ["block", "drain", "gone_soon", "inbox_of", "leave", "now", "pause", "resume", "unblock"]

_TAKES_AT_MOST_S: Final = 5.0
"""Longest time to wait until a running crawl has read a note, in seconds. A running crawl reads its notes once a
second."""


@click.command(epilog="Example: webfountain now https://example.org/news --store rocksdb://news")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@options.store
@options.as_json
def now(urls: tuple[str, ...], store: str, as_json: bool) -> None:
    """Fetch URLs before all others, also in a running crawl.

    A running crawl accepts the URLs within a second. If no crawl runs, the next crawl accepts the URLs. Politeness and
    robots.txt apply to these URLs too.
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
        taken = is_in_use(folder) and gone_soon(path.exists)
    if as_json:
        printing.print_json({"urls": note.urls, "taken": taken})
    else:
        waits = "in the crawl's immediate queue" if taken else "waiting for the next crawl of this store"
        print(f"{counted(len(note.urls), 'URL')} {'is' if len(note.urls) == 1 else 'are'} {waits}")


def _require_scope(store: FrontierStore, note: NowNote) -> None:
    """Raise InputError for a URL that is blocked or that the policy file refuses. The store of a user's own Scrapy
    project has no policy file, so any URL is accepted."""
    from webfountain.report.explain import refusal_of  # noqa: PLC0415  numpy, 0.1 s

    kept = policy_in_force(store)
    collection = None if kept is None else kept.read()
    for url in note.urls:
        if (why := refusal_of(store, collection, url, at=SystemClock().now())) is not None:
            raise InputError(f"{url} is not crawled: {why}")


def inbox_of(store: FrontierStore) -> FeedInbox:
    """Return the inbox from which the crawl of a store on a server reads notes."""
    feed = store.feed()
    assert feed is not None, "a store on a server has an inbox there"
    return FeedInbox(feed)


def leave(store: FrontierStore, note: NowNote | ForgetNote) -> bool:
    """Put a note for the crawl into the inbox of a store on a server. Return whether a running crawl reads the note
    within a few seconds."""
    inbox = inbox_of(store)
    inbox.put(note)
    return has_ants(store.claims, at=SystemClock().now()) and gone_soon(lambda: not inbox.is_empty())


def gone_soon(waits: Callable[[], bool]) -> bool:
    """Return True as soon as the crawl has read the note, or False after `_TAKES_AT_MOST_S`."""
    until = time.monotonic() + _TAKES_AT_MOST_S
    while waits():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@click.command(epilog="Example: webfountain pause --store rocksdb://news")
@options.store
@options.as_json
def pause(store: str, as_json: bool) -> None:
    """Stop the requests of a crawl until it is resumed, even after a restart.

    A running crawl stops within some seconds; requests that have already started are completed.
    """
    with _opened(store) as collection:
        printing.print_note(collection.pause(), as_json=as_json)


@click.command(epilog="Example: webfountain resume --store rocksdb://news")
@options.store
@options.as_json
def resume(store: str, as_json: bool) -> None:
    """Continue a paused crawl."""
    with _opened(store) as collection:
        printing.print_note(collection.resume(), as_json=as_json)


@click.command(epilog="Example: webfountain block http://shop.example/cart/ --until 2027-01-31 --store rocksdb://news")
@click.argument("prefix", required=False, callback=options.as_text)
@click.option("--until", metavar="TIME", help="End of the block: UTC seconds, or 2027-01-31T12:00 in UTC.")
@options.store
@options.as_json
def block(prefix: str | None, until: str | None, store: str, as_json: bool) -> None:
    """Block a site, or all URLs that begin with a prefix. Without PREFIX, list the blocks.

    A block lasts until its end time or `unblock`, even after a restart. The records and copies of the pages are kept. A
    running crawl obeys within some seconds; requests that have already started are completed.
    """
    if prefix is None and until is not None:
        raise InputError("--until needs a PREFIX")
    with _opened(store) as collection:
        if prefix is None:
            found = collection.blocks()
            if as_json:
                printing.print_json(found)
            for each in [] if as_json else found:
                print(f"{each.prefix}  {printing.spell_time(each.until) if each.until else 'until it is unblocked'}")
            return
        answer = collection.block(prefix, until=None if until is None else options.time_of(until))
    printing.print_note(answer, as_json=as_json)


@click.command(epilog="Example: webfountain unblock http://shop.example/cart/ --store rocksdb://news")
@click.argument("prefix", callback=options.as_text)
@options.store
@options.as_json
def unblock(prefix: str, store: str, as_json: bool) -> None:
    """End the block of a site or a URL prefix, written as in `block`.

    A running crawl fetches from an unblocked site within some seconds, and URLs of an unblocked prefix within an hour.
    """
    with _opened(store) as collection:
        answer = collection.unblock(prefix)
    printing.print_note(answer, as_json=as_json)


@click.command(epilog="Example: webfountain drain ant-3f2a --store redis://localhost:6379/0")
@click.argument("ant", callback=options.as_text)
@options.store
@options.as_json
def drain(ant: str, store: str, as_json: bool) -> None:
    """Make one crawling process end, as after Ctrl-C, so that other processes take over its sites.

    ANT is the name of the process in `webfountain status --json`. The error for an unknown name lists the valid names.
    Requests that have already started are completed.
    """
    with _opened(store) as collection:
        answer = collection.drain(ant)
    printing.print_note(answer, as_json=as_json)


def _opened(store: str) -> contextlib.closing[StoredCollection]:
    from webfountain.api.opening import open_stored  # noqa: PLC0415  asyncio and lxml, 0.1 s

    return contextlib.closing(open_stored(store))
