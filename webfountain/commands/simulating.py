"""simulate revisit: what revisit policies would have done on a real change trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webfountain.commands import options

__all__ = ["simulate"]

_FILE = click.Path(path_type=Path)


@click.group()
def simulate() -> None:
    """Virtual crawlers over recorded webs."""


@simulate.command()
@click.option("--events", type=_FILE, required=True, help="The trace's events, a parquet file.")
@click.option("--pages", type=_FILE, required=True, help="Its pages.")
@click.option("--served", is_flag=True, help="Leave out pages that have no URL.")
@click.option("--start", metavar="DATE", required=True, help="First day, 00:00 UTC.")
@click.option("--days", type=int, required=True)
@click.option("--fetches-per-day", type=int, required=True, metavar="K")
@click.option(
    "--policies", default="all", show_default=True, metavar="a,b,…", help="uniform, nutch-adaptive, fountain, …"
)
@click.option(
    "--min-change", type=float, default=0.05, show_default=True, metavar="R", help="Smaller changes did not happen."
)
@click.option("--exclude", metavar="REGEX", help="Leave out pages whose URL it finds.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--daily", type=_FILE, metavar="FILE", help="Obsolete, alive and fetches of each day: .npz, .csv, .parquet."
)
@options.as_json
def revisit(*, policies: str, as_json: bool, **given: Any) -> None:
    """Replay a change trace under revisit policies with K fetches a day."""
    from webfountain.simulate.revisit import simulate_revisit  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_revisit(policies=[name.strip() for name in policies.split(",")], **given)
    if as_json:
        options.print_json(found)
        return
    print(f"{found['pages']:,} pages, {found['days']:,} days from {found['start']}, K = {found['fetches_per_day']:,}")
    columns = {
        "policy": lambda row: row["name"],
        ">obsolete": lambda row: f"{row['obsolete']:.4f}",
        ">fetches": lambda row: f"{row['fetches']:,}",
        ">changes found": lambda row: f"{row['changes_found']:,}",
    }
    options.print_table(({"name": name, **row} for name, row in found["policies"].items()), columns)
