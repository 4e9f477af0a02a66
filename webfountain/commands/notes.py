"""The commands that send a request to a crawl, even while it runs: `now`, `forget`, `pause`, `block` and others."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.errors import InputError, StoreHeld
from webfountain.frontier.inbox.inboxes import FeedInbox, Inbox
from webfountain.frontier.inbox.notes import DeliveryResult, ForgetNote, NowNote
from webfountain.frontier.requests_by_url import holds_requests, keys_of_url, requests_of
from webfountain.report.plurals import counted
from webfountain.report.store_reading import (
    existing_folder,
    inbox_folder,
    policy_in_force,
    reading,
    repository_folder,
)
from webfountain.store.locations import folder_of, is_in_use, is_shared
from webfountain.store.opening import open_store
from webfountain.store.shared_contract import has_ants
from webfountain.urls import canonical, site_of, site_of_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webfountain.api.collection import StoredCollection
    from webfountain.store.contract import FrontierStore

__all__ = ["block", "drain", "forget", "now", "pause", "resume", "unblock"]

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
            taken = _leave(opened, note)
    else:
        folder = existing_folder(store)
        if (folder / "db").is_dir():
            with reading(store) as opened:
                _require_scope(opened, note)
        path = Inbox(inbox_folder(folder)).put(note)
        taken = is_in_use(folder) and _gone_soon(path.exists)
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


def _inbox_of(store: FrontierStore) -> FeedInbox:
    """Return the inbox from which the crawl of a store on a server reads notes."""
    feed = store.feed()
    assert feed is not None, "a store on a server has an inbox there"
    return FeedInbox(feed)


def _leave(store: FrontierStore, note: NowNote | ForgetNote) -> bool:
    """Put a note for the crawl into the inbox of a store on a server. Return whether a running crawl reads the note
    within a few seconds."""
    inbox = _inbox_of(store)
    inbox.put(note)
    return has_ants(store.claims, at=SystemClock().now()) and _gone_soon(lambda: not inbox.is_empty())


def _gone_soon(waits: Callable[[], bool]) -> bool:
    """Return True as soon as the crawl has read the note, or False after `_TAKES_AT_MOST_S`."""
    until = time.monotonic() + _TAKES_AT_MOST_S
    while waits():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@click.command(epilog="Example: webfountain forget --site https://example.org")
@click.argument("url", required=False)
@click.option(
    "--site", callback=options.as_text, metavar="S", help="A whole site, such as https://example.org, instead of a URL."
)
@options.store
@options.repository
@options.as_json
def forget(url: str | None, site: str | None, store: str, repository: str | None, as_json: bool) -> None:
    """Remove a page or a site permanently: its records and copies are deleted, and later links to it are refused."""
    note = _note(url, site)
    _check_requests(note, store)
    if is_shared(store):
        _forget_on_server(note, store, repository, as_json=as_json)
        return
    folder = existing_folder(store)
    inbox = Inbox(inbox_folder(folder))
    path = inbox.put(note)
    try:
        done = _deliver(inbox, store, repository_folder(store, repository))
    except StoreHeld:
        _print_forgotten(note, None, taken=_gone_soon(path.exists), as_json=as_json)
    else:
        _print_forgotten(note, done, taken=True, as_json=as_json)


def _check_requests(note: ForgetNote, store: str) -> None:
    """Raise InputError if the store of a Scrapy project has no request for the URL. The crawl needs the request's
    fingerprint to refuse later requests for the URL."""
    if note.url is None:
        return
    with reading(store) as opened:
        if holds_requests(opened.pages, note.site) and not requests_of(opened.pages, note.url):
            raise InputError(f"forget: no request of {note.url} is known in {store}")


def _note(url: str | None, site: str | None) -> ForgetNote:
    if (url is None) == (site is None):
        raise InputError("forget: give either a URL or --site S")
    if url is not None:
        name = canonical(url)
        return ForgetNote(site_of(name), name)
    return ForgetNote(site_of_text(site or "", "--site"))


def _deliver(inbox: Inbox, store: str, repository: Path) -> DeliveryResult:
    """Process all waiting notes in this process. No other process may be writing to the store."""
    from webfountain.repository.repository import Repository  # noqa: PLC0415  only when no crawl runs

    with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
        if not repository.is_dir():
            return inbox.deliver(opened, None, at=SystemClock().now())
        with contextlib.closing(Repository(repository)) as kept:
            return inbox.deliver(opened, kept, at=SystemClock().now())


def _forget_on_server(note: ForgetNote, store: str, repository: str | None, *, as_json: bool) -> None:
    """Remove the page records at once. The running ants remove the copies. If no ant runs, this process removes the
    copies."""
    with reading(store) as opened:
        at = SystemClock().now()
        if has_ants(opened.claims, at=at):
            keys = [None] if note.url is None else keys_of_url(opened.pages, note.url)
            records = sum(opened.pages.forget(note.site, key, at=at) for key in keys)
            taken = _leave(opened, note)
            _print_forgotten(note, DeliveryResult(forgotten=records), taken=taken, as_json=as_json)
            return
        inbox = _inbox_of(opened)
        inbox.put(note)
        from webfountain.repository.repository import IdleFolders  # noqa: PLC0415  only when no crawl runs

        known = repository is not None or folder_of(store) is not None
        copies = IdleFolders(repository_folder(store, repository)) if known else None
        done = inbox.deliver(opened, copies, at=SystemClock().now())
        if copies is not None and copies.held:
            inbox.put(note)  # an ant is just starting or ending; the next one removes the rest
            _print_forgotten(note, None, taken=False, as_json=as_json)
            return
    _print_forgotten(note, done, taken=True, as_json=as_json)


def _print_forgotten(note: ForgetNote, done: DeliveryResult | None, *, taken: bool, as_json: bool) -> None:
    name = note.url or note.site
    records = None if done is None else done.forgotten
    erased = None if done is None else done.erased
    if as_json:
        printing.print_json({"forgotten": name, "taken": taken, "records": records, "copies": erased})
    elif done is not None and not taken:
        print(
            f"{name}: {counted(done.forgotten, 'page record')} removed; an ant removes its copies when it reads "
            f"the note"
        )
    elif done is not None:
        removed = f"{counted(done.forgotten, 'page record')} and {counted(done.erased, 'WARC record')}"
        print(f"{name} is forgotten: {removed} removed")
    elif taken:
        print(f"{name} is forgotten: the running crawl removed it")
    else:
        print(f"{name}: the note waits in the inbox; the running crawl has not read it yet")


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
