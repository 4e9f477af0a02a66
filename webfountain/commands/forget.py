"""The command `forget`: remove a page or a site for good."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.commands.notes import gone_soon, inbox_of, leave
from webfountain.errors import InputError, StoreHeld
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.frontier.inbox.notes import DeliveryResult, ForgetNote
from webfountain.frontier.requests_by_url import holds_requests, keys_of_url, requests_of
from webfountain.report.plurals import counted
from webfountain.report.store_reading import existing_folder, inbox_folder, reading, repository_folder
from webfountain.store.locations import folder_of, is_shared
from webfountain.store.opening import open_store
from webfountain.store.shared_contract import has_ants
from webfountain.urls import canonical, site_of, site_of_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["forget"]


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
        _print_forgotten(note, None, taken=gone_soon(path.exists), as_json=as_json)
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
            taken = leave(opened, note)
            _print_forgotten(note, DeliveryResult(forgotten=records), taken=taken, as_json=as_json)
            return
        inbox = inbox_of(opened)
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
