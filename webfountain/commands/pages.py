"""The commands that list what a store knows: `pages`, `sites`, `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.records import STATES
from webfountain.report import pages as report_pages
from webfountain.report.store_reading import link_log, reading
from webfountain.store.locations import folder_of
from webfountain.terminal_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.report.pages import PageAnswer

__all__ = ["explain", "pages", "sites"]


@click.command(epilog="Example: webfountain pages --site https://example.org --state failed")
@options.store
@click.option("--site", callback=options.as_text, metavar="S", help="Only this site, such as https://example.org.")
@click.option("--state", type=click.Choice(STATES), help="Only URLs in this state.")
@options.as_lines
def pages(store: str, site: str | None, state: Any, as_lines: bool) -> None:
    """Print one record per known URL."""
    with reading(store) as opened:
        rows = report_pages.pages(opened, site=site, state=state)
        printing.print_json_lines(rows) if as_lines else _print_pages(rows)


def _print_pages(rows: Iterator[PageAnswer]) -> None:
    columns: dict[str, Callable[[PageAnswer], str]] = {
        "state": lambda row: row.state,
        "policy": lambda row: row.policy,
        ">trust": lambda row: f"{row.trust:.3f}",
        ">importance": lambda row: f"{row.importance:.3g}",
        ">checks": lambda row: str(row.checks),
        ">changes": lambda row: str(row.changes),
        ">bucket": lambda row: str(row.bucket),
        "last crawled (UTC)": lambda row: printing.spell_time(row.last_crawled),
        "answer": lambda row: str(row.error or row.status or "-") + (f" ({row.hint})" if row.hint else ""),
        "url": _page_url,
    }
    printing.print_table(rows, columns)


def _page_url(row: PageAnswer) -> str:
    """Return the URL of a page, and the URL that the page redirects to or duplicates, if any."""
    if row.duplicate_of:
        return f"{row.url} = {row.duplicate_of}"
    return f"{row.url} -> {row.target}" if row.target else str(row.url)


@click.command(epilog="Example: webfountain sites --store redis://localhost:6379/0")
@options.store
@options.as_json
def sites(store: str, as_json: bool) -> None:
    """Print one line per known site: its pages, when it is due, its robots.txt, its failures."""
    with reading(store) as opened:
        rows = report_pages.sites(opened)
        printing.print_json(list(rows)) if as_json else _print_sites(rows)


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
        "due (UTC)": lambda row: printing.spell_time(row["due"]) if row["due"] else "now",
        "changed (UTC)": lambda row: printing.spell_time(row["last_changed"]),
    }
    printing.print_table(rows, columns)


@click.command(epilog="Example: webfountain explain https://example.org/news")
@click.argument("url", callback=options.as_text)
@options.store
@click.option("--collection", metavar="FILE", help="Explain by this policy file.  [default: the one in force]")
@click.option(
    "--from",
    "linked_by",
    callback=options.as_text,
    metavar="PAGE",
    help="For an unknown URL: explain it as a link on this page.",
)
@options.as_json
def explain(url: str, store: str, collection: str | None, linked_by: str | None, as_json: bool) -> None:
    """Explain why URL has its policy, trust, importance and next visit, or why it was never accepted."""
    from webfountain.report import explain as explaining  # noqa: PLC0415  numpy, 0.1 s

    with reading(store) as opened:
        rules = explaining.collection_of(opened, collection)
        home = folder_of(store)
        scores = None if home is None else home / "scores"
        links, at = link_log(rules, store), SystemClock().now()
        found = explaining.explain(opened, rules, url, at=at, linked_by=linked_by, scores=scores, links=links)
    printing.print_json(found) if as_json else print("\n".join(map(shown, (found.url or found.given, *found.why))))
