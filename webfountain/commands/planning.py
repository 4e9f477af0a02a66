"""plan solve, plan figures: the optimiser of Edwards 2001 on instance files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from webfountain.commands import options
from webfountain.report.plans import QUALITIES, SOLVERS, packaged_instance, plan_table, read_table, solve_instance_file

__all__ = ["plan"]

_VERSIONS = ("v1", "v2", "v3")


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
    path = Path(instance) if Path(instance).suffix else packaged_instance(instance)
    document = solve_instance_file(path, **given)
    options.print_json(document) if as_json else print(plan_table(document))


@plan.command()
@click.argument("folder", metavar="DIR")
@click.option("--instance", metavar="FILE.toml", help="Instead of the packaged emt1.")
def figures(folder: str, instance: str | None) -> None:
    """Draw Figures 3 to 6 of Edwards 2001 into DIR, as PNG and SVG; about half a minute."""
    from webfountain.report.plots_plan import draw_plans  # noqa: PLC0415  the optimiser, 0.5 s at start

    table = read_table(packaged_instance("emt1") if instance is None else instance)
    for path in draw_plans(table, Path(folder), progress=lambda text: print(text, file=sys.stderr)):
        print(path)
