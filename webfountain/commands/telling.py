"""now, forget: tell a crawl what to do, running or not. Both go through the store's inbox."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

import click

from webfountain.clock import SystemClock
from webfountain.commands import options
from webfountain.errors import InputError, StoreHeld
from webfountain.frontier.inbox import Delivered, Forget, Inbox, Now
from webfountain.store import is_held, open_store
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["forget", "now"]

_TAKES_AT_MOST_S: Final = 5.0
"""How long to wait for a running crawl to take a note; it looks once a second."""


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@options.store
@options.as_json
def now(urls: tuple[str, ...], store: str, as_json: bool) -> None:
    """Put URLs on the immediate queue, also of a running crawl.

    A running crawl takes them within a second; otherwise they wait for the next one. Politeness and robots.txt hold
    for them too.
    """
    note = Now(tuple(canonical(url) for url in urls))
    folder = options.existing_folder(store)
    path = Inbox(options.inbox_folder(folder)).put(note)
    taken = is_held(folder) and _gone_soon(path)
    if as_json:
        options.print_json({"urls": note.urls, "taken": taken})
    else:
        waits = "in the crawl's immediate queue" if taken else "waiting for the next crawl of this store"
        print(f"{len(note.urls):,} {'URL is' if len(note.urls) == 1 else 'URLs are'} {waits}")


@click.command()
@click.argument("url", required=False)
@click.option("--site", metavar="S", help="A whole site, as https://example.org, instead of one URL.")
@options.store
@options.repository
@options.as_json
def forget(url: str | None, site: str | None, store: str, repository: str | None, as_json: bool) -> None:
    """Remove a page or a site for good: records and copies go, links to it are refused from then on."""
    note = _note(url, site)
    folder = options.existing_folder(store)
    inbox = Inbox(options.inbox_folder(folder))
    path = inbox.put(note)
    try:
        done = _deliver(inbox, store, options.repository_folder(store, repository))
    except StoreHeld:
        _print_forgotten(note, None, taken=_gone_soon(path), as_json=as_json)
    else:
        _print_forgotten(note, done, taken=True, as_json=as_json)


def _note(url: str | None, site: str | None) -> Forget:
    if (url is None) == (site is None):
        raise InputError("forget: give a URL or --site S, one of the two")
    if url is not None:
        name = canonical(url)
        return Forget(site_of(name), name)
    home = canonical(site or "")
    if home != site_of(home) + "/":
        raise InputError(f"--site {site!r}: is not a site (allowed: scheme://host[:port])")
    return Forget(site_of(home))


def _deliver(inbox: Inbox, store: str, repository: Path) -> Delivered:
    """Act on the notes here, which only the one writer of a store may."""
    from webfountain.repository.pages import Repository  # noqa: PLC0415  only when no crawl runs

    with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
        if not repository.is_dir():
            return inbox.deliver(opened, None, at=SystemClock().now())
        with contextlib.closing(Repository(repository)) as kept:
            return inbox.deliver(opened, kept, at=SystemClock().now())


def _gone_soon(path: Path) -> bool:
    """Wait until the crawl has taken a note; False when it did not."""
    until = time.monotonic() + _TAKES_AT_MOST_S
    while path.exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _print_forgotten(note: Forget, done: Delivered | None, *, taken: bool, as_json: bool) -> None:
    name = note.url or note.site
    records = None if done is None else done.forgotten
    erased = None if done is None else done.erased
    if as_json:
        options.print_json({"forgotten": name, "taken": taken, "records": records, "copies": erased})
    elif done is not None:
        print(f"{name} is forgotten: {done.forgotten:,} page records and {done.erased:,} WARC records removed")
    elif taken:
        print(f"{name} is forgotten: the running crawl removed it")
    else:
        print(f"{name}: the note waits in the inbox; the crawl that holds the store has not taken it yet")
