"""plan solve, findings, figures: the optimiser of Edwards 2001 on instance files; plan show: the plan in force."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webfountain.clock import SystemClock
from webfountain.commands import options
from webfountain.report.plans import QUALITIES, SOLVERS, packaged_instance, plan_table, read_table, solve_instance_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["plan"]

_VERSIONS = ("v1", "v2", "v3")
_PERIODS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ">period": lambda row: str(row["period"]),
    ">recrawl": lambda row: f"{row['recrawl']:,}",
    ">done": lambda row: f"{row['recrawled']:,}",
    ">changed": lambda row: f"{row['changes']:,}",
    ">new": lambda row: f"{row['new']:,}",
    ">done ": lambda row: f"{row['crawled_new']:,}",
    ">obsolete, predicted": lambda row: f"{row['obsolete_oldest_first']:,.1f}",
    ">of known": lambda row: f"{row['known']:,.0f}",
}
"""Columns of `plan show`: quotas of known and new pages, each with what was done of it."""


@click.group()
def plan() -> None:
    """Solve the optimisation model that decides how often which pages are crawled."""


@plan.command()
@click.argument("instance", metavar="INSTANCE.toml")
@click.option("--strategy", metavar="NAME", help="One of the file's strategies.  [default: its first]")
@click.option("--version", type=click.Choice(_VERSIONS), default="v1", show_default=True, help="Of the page shares.")
@click.option("--periods", type=click.IntRange(1), metavar="T", help="Time periods instead of the file's.")
@click.option("--buckets", type=click.IntRange(1), metavar="B", help="Buckets instead of the file's.")
@click.option("--solver", type=click.Choice(SOLVERS), default="auto", show_default=True)
@click.option("--quality", type=click.Choice(QUALITIES), default="normal", show_default=True)
@click.option("--out", metavar="FILE.npz", help="Write the plan: x (T, B) and z (T).")
@options.as_json
def solve(*, instance: str, as_json: bool, **given: Any) -> None:
    """Solve an instance file of the form of emt1.toml; the name of one that comes with webfountain will do."""
    document = solve_instance_file(_file(instance), **given)
    options.print_json(document) if as_json else print(plan_table(document))


@plan.command()
@options.store
@options.as_json
def show(store: str, as_json: bool) -> None:
    """The plan in force: quotas, prediction, and what happened so far."""
    from webfountain.report.planned import plan_in_force  # noqa: PLC0415  numpy, 0.1 s

    with options.reading(store) as opened:
        found = plan_in_force(opened, at=SystemClock().now())
    if as_json:
        options.print_json(found)
    elif found is None:
        print(
            "no plan: pages are recrawled when their bucket says so; a plan needs "
            "cycle.capacity_pages_per_period and a period's measurements"
        )
    else:
        print(f"{found['words']}; cycle from {options.spell_time(found['start'])} UTC")
        options.print_table(found["by_period"], _PERIODS)


@plan.command()
@click.option("--instance", metavar="FILE.toml", help="Instead of the packaged emt1.")
@options.as_json
def findings(instance: str | None, as_json: bool) -> None:
    """Tables 3 and 4 of Edwards 2001 beside ours, and each of its findings judged."""
    from webfountain.report.findings import findings as judge  # noqa: PLC0415  the optimiser, 0.5 s at start
    from webfountain.report.findings import findings_text  # noqa: PLC0415

    found = judge(packaged_instance("emt1") if instance is None else _file(instance))
    options.print_json(found) if as_json else print(findings_text(found))


@plan.command()
@click.argument("folder", metavar="DIR")
@click.option("--instance", metavar="FILE.toml", help="Instead of the packaged emt1.")
def figures(folder: str, instance: str | None) -> None:
    """Draw Figures 3 to 6 of Edwards 2001 into DIR, as PNG and SVG; about half a minute."""
    from webfountain.report.plots_plan import draw_plans  # noqa: PLC0415  the optimiser, 0.5 s at start

    table = read_table(packaged_instance("emt1") if instance is None else _file(instance))
    for path in draw_plans(table, Path(folder), progress=lambda text: print(text, file=sys.stderr)):
        print(path)


def _file(instance: str) -> Path:
    """A file, or the one that comes with webfountain under this name."""
    return Path(instance) if Path(instance).suffix else packaged_instance(instance)
