"""The command `plan`: solve and draw the optimisation model of Edwards 2001, and show the present plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.lab.solving import QUALITIES, SOLVERS, packaged_instance, plan_table, read_table, solve_instance_file
from webfountain.report.store_reading import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["figures", "findings", "plan", "show", "solve"]

_VERSIONS = ("v1", "v2", "v3")
_PERIODS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ">period": lambda row: str(row["period"]),
    ">recrawl": lambda row: f"{row['recrawl']:,}",
    ">done": lambda row: f"{row['recrawled']:,}",
    ">changed": lambda row: f"{row['changes']:,}",
    ">new": lambda row: f"{row['new']:,}",
    ">done ": lambda row: f"{row['crawled_new']:,}",
}
"""Columns of `plan show`: quotas and fetches of known and of new pages."""
_PREDICTED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ">obsolete, predicted": lambda row: f"{row['obsolete_oldest_first']:,.1f}",
    ">of known": lambda row: f"{row['known']:,.0f}",
}
"""Additional columns of `plan show` for strategies 1 to 3."""
_CYCLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "cycle from (UTC)": lambda row: printing.spell_time(row["begin"]),
    ">obsolete, forecast": lambda row: f"{row['obsolete']:.2%}",
    ">mean": lambda row: "-" if row["mean"] is None else f"{row['mean']:.2%}",
    ">with a probability of 80 %": lambda row: f"{row['low']:.2%} to {row['high']:.2%}",
    ">found": lambda row: f"{row['found']:.2%}" if "found" in row else "-",
}
"""Columns of `plan show` for the strategy fountain: forecast and measured obsolete share of each cycle."""
_CYCLES_SHOWN = 8


@click.group()
def plan() -> None:
    """Solve the optimisation model, which decides how often each page is crawled."""


@plan.command(epilog="Example: webfountain plan solve emt1 --periods 14 --out plan.npz")
@click.argument("instance", metavar="INSTANCE.toml")
@click.option("--strategy", metavar="NAME", help="Name of a strategy in the file.  [default: the first]")
@click.option(
    "--version",
    type=click.Choice(_VERSIONS),
    default="v1",
    show_default=True,
    help="Instance of Edwards 2001: the pages and their change rates.",
)
@click.option("--periods", type=click.IntRange(1), metavar="T", help="Number of periods.  [default: the file's]")
@click.option("--buckets", type=click.IntRange(1), metavar="B", help="Number of buckets.  [default: the file's]")
@click.option(
    "--solver",
    type=click.Choice(SOLVERS),
    default="auto",
    show_default=True,
    help="auto chooses the solver that fits the model.",
)
@click.option(
    "--quality",
    type=click.Choice(QUALITIES),
    default="normal",
    show_default=True,
    help="high is more exact and slower.",
)
@click.option("--out", metavar="FILE.npz", help="Write the plan to FILE: x (T, B) and z (T).")
@options.as_json
def solve(*, instance: str, as_json: bool, **given: Any) -> None:
    """Solve an instance: a file like emt1.toml, or the name of an instance that comes with webfountain."""
    document = solve_instance_file(_file(instance), **given)
    printing.print_json(document) if as_json else print(plan_table(document))


@plan.command(epilog="Example: webfountain plan show --store rocksdb://news")
@options.store
@click.option(
    "--goal",
    metavar="GOAL",
    help="Show how many fetches a goal takes: obsolete=2%, or older=7d:5% (at most 5 % of the copies out of date for "
    "more than 7 days).",
)
@options.as_json
def show(store: str, goal: str | None, as_json: bool) -> None:
    """Show the present plan: quotas, prediction, and the results so far.

    If no budget is set, show a plan for the measured rate. The crawl does not follow this plan.
    """
    if goal is not None:
        _show_goal(store, goal, as_json=as_json)
        return
    from webfountain.lab.measured_plan import has_budget, measured_plan  # noqa: PLC0415  numpy, 0.1 s
    from webfountain.report.plan import plan_in_force  # noqa: PLC0415

    with reading(store) as opened:
        at = SystemClock().now()
        found = plan_in_force(opened, at=at) if has_budget(opened) else measured_plan(opened, at=at)
    if as_json:
        printing.print_json(found)
    elif found is None:
        print(
            "no plan: each page is recrawled when its bucket says so. A plan needs a few dozen copies; with a "
            "budget (cycle.capacity_pages_per_period) the first plan also needs the measurements of one period"
        )
    else:
        print(f"{found['words']}; cycle from {printing.spell_time(found['start'])} UTC")
        if found["goal"] is not None:
            print(found["goal"]["words"])
        printing.print_table(found["by_period"], _PERIODS if found["fountain"] else _PERIODS | _PREDICTED)
        if found["foretold"] is not None:
            print()
            printing.print_table([*found["cycles"][-_CYCLES_SHOWN:], found["foretold"]], _CYCLES)


def _show_goal(store: str, goal: str, *, as_json: bool) -> None:
    from webfountain.lab.measured_plan import goal_document, goal_of, goal_words  # noqa: PLC0415  numpy, 0.1 s

    wanted = goal_of(goal)
    with reading(store) as opened:
        found = goal_document(opened, wanted, at=SystemClock().now())
    if as_json:
        printing.print_json(found)
    else:
        print("not enough has been measured to compute the cost of a goal" if found is None else goal_words(found))


@plan.command(epilog="Example: webfountain plan findings")
@click.option(
    "--instance", metavar="FILE.toml", help="An instance file.  [default: the packaged emt1 and emt2, side by side]"
)
@options.as_json
def findings(instance: str | None, as_json: bool) -> None:
    """Show Tables 3 and 4 of Edwards 2001 next to our figures, and judge each of the paper's findings."""
    from webfountain.lab.findings import beside_text, findings_text  # noqa: PLC0415
    from webfountain.lab.findings import findings as judge  # noqa: PLC0415  the optimiser, 0.5 s at start

    if instance is not None:
        found = judge(_file(instance))
        printing.print_json(found) if as_json else print(findings_text(found))
        return
    both = {name: judge(packaged_instance(name)) for name in ("emt1", "emt2")}
    # In JSON, the keys of the first instance stay at the top level, where programs expect them.
    printing.print_json({**both["emt1"], "instances": both}) if as_json else print(beside_text(both))


@plan.command(epilog="Example: webfountain plan figures drawn")
@click.argument("folder", metavar="DIR")
@click.option("--instance", metavar="FILE.toml", help="An instance file.  [default: the packaged emt1]")
def figures(folder: str, instance: str | None) -> None:
    """Draw Figures 3 to 6 of Edwards 2001 into DIR, as PNG and SVG; this takes about half a minute."""
    from webfountain.lab.plan_figures import draw_plans  # noqa: PLC0415  the optimiser, 0.5 s at start

    table = read_table(packaged_instance("emt1") if instance is None else _file(instance))
    for path in draw_plans(table, Path(folder), progress=lambda text: print(text, file=sys.stderr)):
        print(path)


def _file(instance: str) -> Path:
    return Path(instance) if Path(instance).suffix else packaged_instance(instance)
