"""The command `changes`: the change log, which says what happened to each page, in order."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from webfountain.api.changes import change_of
from webfountain.commands import options, printing
from webfountain.report.store_reading import cursor_of, every_change, reading
from webfountain.urls import site_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.store.contract import FrontierStore

__all__ = ["LONGEST_WAIT_S", "SHORTEST_WAIT_S", "changes", "rows_after"]

SHORTEST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 2.0
"""Longest pause between two polls of `changes --follow`, in seconds. The pauses get longer while no page changes."""


@click.command(epilog="Example: webfountain changes --follow --jsonl")
@options.store
@click.option("--since", metavar="CURSOR|TIME", help="Only entries after this cursor.  [default: the whole log]")
@click.option("--follow", is_flag=True, help="Wait for further entries until Ctrl-C.")
@click.option("--site", callback=options.as_text, metavar="S", help="Only this site, such as https://example.org.")
@options.as_lines
def changes(store: str, since: str | None, follow: bool, site: str | None, as_lines: bool) -> None:
    """Print the change log: what happened to each page, in order, and the cursor to continue with.

    A consumer should keep a page after the verdicts new, changed, minor and returned, and remove the page after any
    other verdict.
    """
    asked, site = options.since_of(since), None if site is None else site_of_text(site, "--site")
    with reading(store) as opened, contextlib.suppress(KeyboardInterrupt):
        cursor = cursor_of(opened, asked)
        wait_s = SHORTEST_WAIT_S
        while True:
            before, rows = cursor, list(rows_after(cursor, opened, site))
            cursor = rows[-1]["cursor"]
            if not follow or cursor != before:
                printing.print_json_lines(rows) if as_lines else _print_changes(rows)
            if not follow:
                return
            wait_s = min(LONGEST_WAIT_S, 1.5 * wait_s) if cursor == before else SHORTEST_WAIT_S
            time.sleep(wait_s)


def rows_after(cursor: str | None, store: FrontierStore, site: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the entries of the change log after a cursor; if `site` is given, only the entries of this site. The last
    row has the cursor for the next call. If the newest entry of the log is about a site other than `site`, the last row
    contains only a cursor."""
    # Read the end before the entries, so that no entry that is added in between is missed.
    end, reported = store.changes.end() if cursor is None else cursor, False
    for end, entry in every_change(store, cursor):
        reported = site is None or entry.site == site
        if reported:
            yield {"cursor": end, **msgspec.to_builtins(change_of(entry, end)), "verdict": entry.verdict}
    if not reported:
        yield {"cursor": end}


def _print_changes(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = {
        "verdict": lambda row: row["verdict"],
        "time (UTC)": lambda row: printing.spell_time(row["time"]),
        ">resemblance": lambda row: "-" if row["resemblance"] is None else f"{row['resemblance']:.3f}",
        "url": lambda row: row["url"] + (f" -> {row['target']}" if row["target"] else ""),
        "title": lambda row: row["title"] or "-",
    }
    printing.print_table((row for row in rows if "url" in row), columns)
    print(f"continue with --since {rows[-1]['cursor']}")
