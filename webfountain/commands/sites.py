"""The command `sites`: one line for each known site."""

from __future__ import annotations

from typing import Any

import click

from webfountain.commands import options, printing
from webfountain.report import pages as report_pages
from webfountain.report.store_reading import reading

__all__ = ["sites"]


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
        "due (UTC)": lambda row: printing.spell_time(row["due"]),
        "changed (UTC)": lambda row: printing.spell_time(row["last_changed"]),
    }
    printing.print_table(rows, columns)
