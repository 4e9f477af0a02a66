"""status, pages, sites, texts, cat: what is known, also while a crawl runs. They change nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from webfountain.clock import SystemClock
from webfountain.commands import options
from webfountain.records import STATES
from webfountain.report import state as looked
from webfountain.store import is_held
from webfountain.store.contract import PLAN
from webfountain.terminal import shown, shown_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.errors import RepositoryError
    from webfountain.repository.record import Stored
    from webfountain.store.contract import FrontierStore

__all__ = ["cat", "pages", "sites", "status", "texts"]


@click.command()
@options.store
@options.as_json
def status(store: str, as_json: bool) -> None:
    """Counts by state, rate, freshness estimate, plan in force."""
    with options.reading(store) as opened:
        found = looked.status(opened, at=SystemClock().now(), period_s=opened.period_s, fastest_s=opened.fastest_s)
        plan = _plan(opened)
    found = {"store": store, **found, "plan": plan, "crawling": is_held(options.existing_folder(store))}
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
@click.option("--since", metavar="TIME", help="Only what came or went since: UTC seconds, or 2026-01-31T12:00.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print one JSON document a line.")
def texts(store: str, repository: str | None, since: str | None, as_lines: bool) -> None:
    """What changed, as text: url, verdict, fetched, title, text. A gone page has text null."""
    at = 0.0 if since is None else options.time_of(since)
    lost: list[RepositoryError] = []
    with options.reading(store) as opened, options.copies(store, repository) as kept:
        rows = looked.texts(opened, kept, since=at, unreadable=lost.append)
        options.print_json_lines(rows) if as_lines else _print_texts(rows)
    if lost:
        print(
            f"webfountain: warning: {len(lost):,} pages left out, whose copy cannot be read "
            f"(the first: {lost[0]}); `webfountain check --repair` has them fetched again",
            file=sys.stderr,
        )


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
