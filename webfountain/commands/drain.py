"""The command `drain`: a note to one crawling process."""

from __future__ import annotations

import contextlib

import click

from webfountain.api.opening import open_stored
from webfountain.commands import options, printing

__all__ = ["drain"]


@click.command(epilog="Example: webfountain drain ant-3f2a --store redis://localhost:6379/0")
@click.argument("ant", callback=options.as_text)
@options.store
@options.as_json
def drain(ant: str, store: str, as_json: bool) -> None:
    """Tell one crawling process to give up its sites and end, as after Ctrl-C; other processes take its sites over.

    ANT is its name in `webfountain status --json`; for another name, the error lists the existing ones. Requests under
    way are still completed.
    """
    with contextlib.closing(open_stored(store)) as collection:
        answer = collection.drain(ant)
    printing.print_note(answer, as_json=as_json)
