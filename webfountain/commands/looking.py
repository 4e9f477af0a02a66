"""status, pages, sites, texts, changes, cat: what is known, also while a crawl runs. They change nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from webfountain.clock import SystemClock
from webfountain.commands import options
from webfountain.records import STATES
from webfountain.report import state as looked
from webfountain.store import is_held, is_shared, without_password
from webfountain.store.contract import PLAN
from webfountain.terminal import shown, shown_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.errors import RepositoryError
    from webfountain.repository.record import Stored
    from webfountain.store.contract import FrontierStore

__all__ = ["cat", "changes", "pages", "sites", "status", "texts"]

SHORTEST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 2.0
"""Between two looks of `changes --follow`: the quieter the log, the longer."""


@click.command()
@options.store
@options.as_json
def status(store: str, as_json: bool) -> None:
    """Counts by state, rate, freshness estimate, plan in force."""
    with options.reading(store) as opened:
        found = looked.status(opened, at=SystemClock().now(), period_s=opened.period_s, fastest_s=opened.fastest_s)
        plan = _plan(opened)
    # Of a server's store nobody has a lock: it is crawled when somebody has its sites.
    is_crawled = found["active_sites"] > 0 if is_shared(store) else is_held(options.existing_folder(store))
    found = {"store": without_password(store), **found, "plan": plan, "crawling": is_crawled}
    options.print_json(found) if as_json else _print_status(found)


@click.command()
@options.store
@click.option("--site", metavar="S", help="Only this site, as https://example.org.")
@click.option("--state", type=click.Choice(STATES), help="Only URLs in this state.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def pages(store: str, site: str | None, state: Any, as_lines: bool) -> None:
    """One record per known URL."""
    with options.reading(store) as opened:
        rows = looked.pages(opened, site=site, state=state)
        options.print_json_lines(rows) if as_lines else _print_pages(rows)


@click.command()
@options.store
@options.as_json
def sites(store: str, as_json: bool) -> None:
    """One line per known site: its pages, when it is due, its robots.txt, its failures."""
    with options.reading(store) as opened:
        rows = looked.sites(opened)
        options.print_json(list(rows)) if as_json else _print_sites(rows)


@click.command()
@options.store
@options.repository
@click.option(
    "--since",
    metavar="TIME|CURSOR",
    help="Only what came, changed or went since: a cursor of the change log, UTC seconds, or 2026-01-31T12:00.",
)
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def texts(store: str, repository: str | None, since: str | None, as_lines: bool) -> None:
    """What changed, as text: url, verdict, fetched, title, text, cursor. A page no longer to be held has text null."""
    asked = options.since_of(since)
    lost: list[RepositoryError] = []
    with options.reading(store) as opened, options.copies(store, repository) as kept:
        cursor = options.cursor_of(opened, asked)
        if cursor is None:
            rows = looked.texts(opened, kept, unreadable=lost.append)
        else:
            rows = looked.texts_since(opened, kept, cursor, unreadable=lost.append)
        options.print_json_lines(rows) if as_lines else _print_texts(rows)
    if lost:
        print(
            f"webfountain: warning: {len(lost):,} pages left out, whose copy cannot be read "
            f"(the first: {lost[0]}); `webfountain check --repair` has them fetched again",
            file=sys.stderr,
        )


@click.command()
@options.store
@click.option("--since", metavar="CURSOR|TIME", help="Only what came after; all that the log keeps without it.")
@click.option("--follow", is_flag=True, help="Wait for more, until interrupted.")
@click.option("--site", metavar="S", help="Only this site, as https://example.org.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def changes(store: str, since: str | None, follow: bool, site: str | None, as_lines: bool) -> None:
    """The change log: what became of each page, in order, and the cursor to go on with.

    A page whose verdict is new, changed, minor or returned is to be held; after any other it is not.
    """
    asked = options.since_of(since)
    with options.reading(store) as opened, contextlib.suppress(KeyboardInterrupt):
        cursor = options.cursor_of(opened, asked)
        wait_s = SHORTEST_WAIT_S
        while True:
            before, rows = cursor, list(looked.changes(opened, cursor, site=site))
            cursor = rows[-1]["cursor"]
            if not follow or cursor != before:
                options.print_json_lines(rows) if as_lines else _print_changes(rows)
            if not follow:
                return
            wait_s = min(LONGEST_WAIT_S, 1.5 * wait_s) if cursor == before else SHORTEST_WAIT_S
            time.sleep(wait_s)


@click.command()
@click.argument("url")
@options.store
@options.repository
@click.option("--text", "part", flag_value="text", help="The visible text instead of the bytes.")
@click.option("--headers", "part", flag_value="headers", help="Status and headers of the answer instead.")
@options.as_json
def cat(url: str, store: str, repository: str | None, part: str | None, as_json: bool) -> None:
    """Print the newest copy of URL after content decoding."""
    with options.reading(store) as opened, options.copies(store, repository) as kept:
        copy = looked.cat(opened, kept, url)
    if as_json:
        options.print_json(_copy_document(copy))
    elif part == "text":
        print(shown_lines(looked.text_of_copy(copy).text))
    elif part == "headers":
        print("\n".join([str(copy.status), *(shown(f"{name}: {value}") for name, value in copy.headers)]))
    else:
        sys.stdout.buffer.write(copy.body)
        sys.stdout.buffer.flush()


def _plan(store: FrontierStore) -> dict[str, Any] | None:
    """The plan in force; what reads it is imported only where there is one."""
    if store.value(PLAN) is None:
        return None
    from webfountain.report.planned import plan_in_force  # noqa: PLC0415  numpy, 0.1 s

    return plan_in_force(store, at=SystemClock().now())


def _copy_document(copy: Stored) -> dict[str, Any]:
    found = looked.text_of_copy(copy)
    headers = [list(header) for header in copy.headers]
    answer = {"url": copy.url, "fetched": copy.at, "status": copy.status, "headers": headers}
    return {**answer, "title": found.title, "text": found.text}


def _print_changes(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = {
        "verdict": lambda row: row["verdict"],
        "time (UTC)": lambda row: options.spell_time(row["time"]),
        ">resemblance": lambda row: "-" if row["resemblance"] is None else f"{row['resemblance']:.3f}",
        "url": lambda row: row["url"] + (f" -> {row['target']}" if row["target"] else ""),
        "title": lambda row: row["title"] or "-",
    }
    options.print_table((row for row in rows if "url" in row), columns)
    print(f"go on with --since {rows[-1]['cursor']}")


def _print_status(found: Mapping[str, Any]) -> None:
    counts = ", ".join(f"{count:,} {state}" for state, count in found["pages"].items() if count)
    basis = "estimate" if found["crawling"] else "estimate for now; no crawl is running to keep it so"
    fresh = "unknown yet" if found["freshness"] is None else f"{found['freshness']:.1%} of the known pages ({basis})"
    rate = f"{found['pages_per_second']:.2f} pages/s since {options.spell_time(found['since'])} UTC"
    lines = {
        "store": found["store"],
        "known": f"{found['known']:,} URLs" + (f": {counts}" if counts else ""),
        "sites": f"{found['sites']:,}, {found['active_sites']:,} active now",
        "leased": f"{found['in_flight']:,} URLs; {found['immediate']:,} on the immediate queue",
        "rate": f"{rate}: {found['fetches']:,} fetches, {found['changes']:,} found a change",
        "fresh": fresh,
        "plan": "none: the buckets alone decide" if found["plan"] is None else found["plan"]["words"],
    }
    for name, text in lines.items():
        print(f"{name:<8}{text}")


def _print_pages(rows: Any) -> None:
    columns = {
        "state": lambda row: row["state"],
        ">checks": lambda row: str(row["checks"]),
        ">changes": lambda row: str(row["changes"]),
        ">bucket": lambda row: str(row["bucket"]),
        "last crawled (UTC)": lambda row: options.spell_time(row["last_crawled"]),
        "answer": lambda row: str(row["error"] or row["status"] or "-"),
        "url": lambda row: row["url"],
    }
    options.print_table(rows, columns)


def _print_sites(rows: Any) -> None:
    columns = {
        "site": lambda row: row["site"],
        ">known": lambda row: str(sum(row["pages"].values())),
        ">crawled": lambda row: str(row["pages"]["crawled"]),
        ">new": lambda row: str(row["pages"]["never-crawled"]),
        ">gone": lambda row: str(row["pages"]["gone"]),
        ">failed": lambda row: str(row["pages"]["failed"]),
        ">refused": lambda row: str(row["pages"]["refused"]),
        "robots.txt": lambda row: row["robots"],
        "due (UTC)": lambda row: options.spell_time(row["due"]),
    }
    options.print_table(rows, columns)


def _print_texts(rows: Any) -> None:
    columns = {
        "verdict": lambda row: row["verdict"],
        "fetched (UTC)": lambda row: options.spell_time(row["fetched"]),
        ">characters": lambda row: "-" if row["text"] is None else f"{len(row['text']):,}",
        "url": lambda row: row["url"],
        "title": lambda row: row["title"] or "-",
    }
    options.print_table(rows, columns)
