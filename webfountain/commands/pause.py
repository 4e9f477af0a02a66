"""The commands `pause` and `resume`: notes to a running crawl, or to the next one."""

from __future__ import annotations

import click

from webfountain.api.opening import open_stored
from webfountain.commands import options, printing

__all__ = ["pause", "resume"]


@click.command(epilog="Example: webfountain pause --store rocksdb://news")
@options.store
@options.as_json
def pause(store: str, as_json: bool) -> None:
    """Stop the requests of a crawl until it is resumed, also after a restart.

    A running crawl stops within some seconds; requests under way are still completed.
    """
    _leave(store, "pause", as_json=as_json)


@click.command(epilog="Example: webfountain resume --store rocksdb://news")
@options.store
@options.as_json
def resume(store: str, as_json: bool) -> None:
    """Continue a paused crawl."""
    _leave(store, "resume", as_json=as_json)


def _leave(store: str, note: str, *, as_json: bool) -> None:
    collection = open_stored(store)
    try:
        answer = collection.pause() if note == "pause" else collection.resume()
    finally:
        collection.close()
    printing.print_note(answer, as_json=as_json)
