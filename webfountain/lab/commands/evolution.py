"""The command `evolution`: how pages change, from a change trace or a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webfountain.commands import options, printing
from webfountain.errors import InputError
from webfountain.lab.evolution import evolution as analyse
from webfountain.lab.observations import DAY, Observation, observe_store, observe_trace
from webfountain.report.plurals import counted
from webfountain.report.store_reading import reading

if TYPE_CHECKING:
    from webfountain.lab.evolution import Evolution, GroupEvolution

__all__ = ["evolution"]

_FILE = click.Path(path_type=Path)


@click.command(
    epilog="Example: webfountain evolution --events kafka-events.parquet --pages kafka-pages.parquet --plots figures"
)
@click.option("--events", type=_FILE, multiple=True, help="File with the events of a trace; repeatable.")
@click.option("--pages", type=_FILE, multiple=True, help="Pages of a trace; repeatable, in the order of --events.")
@click.option("--store", metavar="URL", help="Analyse a store instead of a trace.")
@click.option("--start", metavar="DATE", help="First day.  [default: the first event]")
@click.option("--days", type=click.IntRange(1), help="Number of days.  [default: to the last event]")
@click.option("--served", is_flag=True, help="Leave out pages of a trace that have no URL.")
@click.option(
    "--min-change",
    type=options.FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="For a trace: ignore a change if the resemblance of the old and new text is above 1 - R.",
)
@click.option(
    "--day",
    type=options.FiniteRange(0, min_open=True),
    default=DAY,
    show_default=True,
    help="For a store: length of a day in seconds.",
)
@click.option(
    "--group-by",
    type=click.Choice(["site", "tld"]),
    default="site",
    show_default=True,
    help="Draw one curve per site or per top-level domain.",
)
@click.option("--plots", type=_FILE, metavar="DIR", help="Draw Figures 2, 4, 5 and 6 of Cho 2000 into DIR.")
@options.as_json
def evolution(store: str | None, group_by: Any, plots: Path | None, as_json: bool, **given: Any) -> None:
    """Show how pages change: intervals, lifespans, half-life, Poisson check (Cho 2000)."""
    if bool(given["events"]) == (store is not None):
        raise InputError("evolution: give --events F and --pages F, or --store URL")
    one_observed = _observed_store(store, given["day"]) if store is not None else _observed_traces(**given)
    found = analyse(one_observed, group_by=group_by)
    drawn: list[Path] = []
    if plots is not None:
        from webfountain.lab.evolution_figures import draw_evolution  # noqa: PLC0415  draws only when asked

        drawn = draw_evolution(found, plots)
    if as_json:
        printing.print_json(found)
    else:
        _print(found)
        for path in drawn:
            print(path)


def _observed_store(url: str, day: float) -> Observation:
    with reading(url) as opened:
        return observe_store(opened.pages.records(), day=day)


def _observed_traces(
    *,
    events: tuple[Path, ...],
    pages: tuple[Path, ...],
    start: str | None,
    days: int | None,
    served: bool,
    min_change: float,
    day: float,
) -> Observation:
    if len(events) != len(pages):
        raise InputError(f"evolution: {len(events)} --events and {len(pages)} --pages; each trace needs one of each")
    if len(events) > 1 and (start is None or days is None):
        raise InputError("evolution: several traces need --start and --days, so that they cover the same days")
    begin = None if start is None else options.time_of(start)
    all_observed = [
        observe_trace(event, page, start=begin, days=days, min_change=min_change, served=served)
        for event, page in zip(events, pages, strict=True)
    ]
    return Observation(
        [span for one_observed in all_observed for span in one_observed.spans],
        all_observed[0].days,
        all_observed[0].start,
    )


def _print(found: Evolution) -> None:
    print(f"{counted(found.days, 'day')} from {printing.spell_time(found.start)} UTC")
    columns = {
        "": lambda row: row["name"],
        ">pages": lambda row: f"{row['group'].pages:,}",
        ">changes": lambda row: f"{row['group'].changes:,}",
        ">never changed": lambda row: f"{row['group'].never_changed:,}",
        ">half changed": lambda row: _days(row["group"]),
    }
    groups = {"all": found.all, **(found.groups if len(found.groups) > 1 else {})}
    printing.print_table(({"name": name, "group": group} for name, group in groups.items()), columns)
    for name, group in groups.items():
        _print_group(name, group)


def _days(group: GroupEvolution) -> str:
    return "never" if group.half_changed_days is None else counted(group.half_changed_days, "day")


def _print_group(name: str, group: GroupEvolution) -> None:
    print(f"\n{name}")
    print("  change interval     " + _shares(group.change_interval))
    print("  lifespan, observed  " + _shares(group.lifespan_seen))
    print("  lifespan, doubled   " + _shares(group.lifespan_doubled))
    for check in group.poisson:
        if check.distance is None or check.critical is None or check.over_dispersion is None:
            print(f"  Poisson, {check.mean:.0f} days    no page with enough changes")
        else:
            print(
                f"  Poisson, {check.mean:.0f} days    {check.pages:,} pages, {check.intervals:,} intervals: distance "
                f"{check.distance:.3f} (5 % point {check.critical:.3f}), over-dispersion {check.over_dispersion:.2f}"
            )


def _shares(shares: dict[str, float]) -> str:
    return "   ".join(f"{name} {share:.1%}" for name, share in shares.items())
