"""The command `pages`: one record for each known URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webfountain.commands import options, printing
from webfountain.records import STATES
from webfountain.report import pages as report_pages
from webfountain.report.store_reading import reading

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["pages"]


@click.command(epilog="Example: webfountain pages --site https://example.org --state failed")
@options.store
@click.option("--site", callback=options.as_text, metavar="S", help="Only this site, such as https://example.org.")
@click.option("--state", type=click.Choice(STATES), help="Only URLs in this state.")
@click.option("--jsonl", "--json", "as_lines", is_flag=True, help="Print JSON lines: one document a line.")
def pages(store: str, site: str | None, state: Any, as_lines: bool) -> None:
    """Print one record per known URL."""
    with reading(store) as opened:
        rows = report_pages.pages(opened, site=site, state=state)
        printing.print_json_lines(rows) if as_lines else _print_pages(rows)


def _print_pages(rows: Any) -> None:
    columns = {
        "state": lambda row: row["state"],
        "policy": lambda row: row["policy"],
        ">trust": lambda row: f"{row['trust']:.3f}",
        ">importance": lambda row: f"{row['importance']:.3g}",
        ">checks": lambda row: str(row["checks"]),
        ">changes": lambda row: str(row["changes"]),
        ">bucket": lambda row: str(row["bucket"]),
        "last crawled (UTC)": lambda row: printing.spell_time(row["last_crawled"]),
        "answer": lambda row: str(row["error"] or row["status"] or "-") + (f" ({row['hint']})" if row["hint"] else ""),
        "url": _page_url,
    }
    printing.print_table(rows, columns)


def _page_url(row: Mapping[str, Any]) -> str:
    """Return the URL of a page, with the page that it repeats or redirects to."""
    if row["duplicate_of"]:
        return f"{row['url']} = {row['duplicate_of']}"
    return f"{row['url']} -> {row['target']}" if row["target"] else str(row["url"])
