"""The commands `block` and `unblock`: notes to a running crawl, or to the next one."""

from __future__ import annotations

import contextlib

import click

from webfountain.api.opening import open_stored
from webfountain.commands import options, printing
from webfountain.errors import InputError

__all__ = ["block", "unblock"]


@click.command(epilog="Example: webfountain block http://shop.example/cart/ --until 2027-01-31 --store rocksdb://news")
@click.argument("prefix", required=False, callback=options.as_text)
@click.option("--until", metavar="TIME", help="End of the block: UTC seconds, or 2027-01-31T12:00 in UTC.")
@options.store
@options.as_json
def block(prefix: str | None, until: str | None, store: str, as_json: bool) -> None:
    """Block a site, or all URLs that begin with a prefix. Without PREFIX, list the blocks.

    A block lasts until its time or `unblock`, also through restarts. What is known about the pages stays, with their
    copies. A running crawl obeys within some seconds; requests under way are still completed.
    """
    if prefix is None and until is not None:
        raise InputError("--until: a prefix is missing")
    with contextlib.closing(open_stored(store)) as collection:
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

    A blocked site continues within some seconds, single pages of a site within an hour.
    """
    with contextlib.closing(open_stored(store)) as collection:
        answer = collection.unblock(prefix)
    printing.print_note(answer, as_json=as_json)
