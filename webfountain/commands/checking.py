"""check: what of a store and its repository is whole, and with --repair the mending of what can be mended."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from webfountain.clock import SystemClock
from webfountain.commands import options
from webfountain.errors import InputError, StoreError
from webfountain.report.wholeness import look_over, mend_copies
from webfountain.store import is_held, open_store, read_every_entry, recount

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.report.wholeness import Wholeness

__all__ = ["check"]

_SHOWN = 10


@click.command()
@options.store
@options.repository
@click.option("--repair", is_flag=True, help="Count anew, and have pages fetched again whose copy is gone.")
@options.as_json
def check(store: str, repository: str | None, repair: bool, as_json: bool) -> int:
    """Tell whether a store and its copies are whole: status 0 when they are, or were made so, else 1.

    Every entry of the store and every copy is read. A crawl may be running, but not with --repair.
    """
    folder = options.existing_folder(store)
    if is_held(folder) and repair:
        raise InputError(f"--store {store!r}: a crawl has it open; stop that first, then repair")
    document: dict[str, Any] = {"store": store, "damage": None, "entries": None}
    try:
        document["entries"] = read_every_entry(folder)
        found = _look(store, repository)
    except StoreError as error:
        document["damage"] = str(error)
        options.print_json({**document, "whole": False}) if as_json else _print_damage(error)
        return 1
    mended = repair and not found.is_whole
    if mended:
        _mend(store, folder, found)
    if as_json:
        options.print_json({**document, "whole": found.is_whole, "mended": mended, **msgspec.to_builtins(found)})
    else:
        _print(found, entries=document["entries"], mended=mended)
    return 0 if found.is_whole or mended else 1


def _look(store: str, repository: str | None) -> Wholeness:
    """Both opened for reading; a store without a repository has no copies to look at."""
    has_copies = options.repository_folder(store, repository).is_dir()
    with options.reading(store) as opened, contextlib.ExitStack() as stack:
        kept = stack.enter_context(options.copies(store, repository)) if has_copies else None
        return look_over(opened, kept, progress=_progress)


def _mend(store: str, folder: Path, found: Wholeness) -> None:
    if found.counts:
        recount(folder)
    if found.lost:
        with contextlib.closing(open_store(store, collection=None, period_s=None)) as opened:
            mend_copies(opened, found.lost, at=SystemClock().now())


def _progress(pages: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{pages:,} pages", end="\r", file=sys.stderr, flush=True)


def _print_damage(error: StoreError) -> None:
    print(f"webfountain: {error}", file=sys.stderr)
    print("store   damaged: what lies in that block is lost; put a backup of its folder back, or begin a new store")


def _print(found: Wholeness, *, entries: int, mended: bool) -> None:
    print(f"store   whole: {entries:,} entries read, {found.pages:,} URLs on {found.sites:,} sites")
    if not found.counts:
        print("counts  whole")
    else:
        print(f"counts  {'made anew' if mended else 'wrong'}: {len(found.counts):,} differ")
        for what, counted, there in found.counts[:_SHOWN]:
            print(f"          {what}: counted {counted:,}, there are {there:,}")
    if not found.lost:
        print(f"copies  whole: {found.copies:,} read")
    else:
        then = "their pages are due now, to be fetched again" if mended else "`--repair` has their pages fetched again"
        print(f"copies  {len(found.lost):,} of {found.copies:,} gone or damaged; {then}")
        for each in found.lost[:_SHOWN]:
            print(f"          {each.url}: {each.why}")
