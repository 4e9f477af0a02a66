"""evolution, simulate, rank, plan: what traces, graphs and instances tell, without a crawl.

`evolution`: how pages change, from a trace or a store. `simulate`: what policies would have done on real change traces
and link graphs. `rank`: scores of the pages of a link graph, from an npz file or a crawl's link log. `plan`: the
optimiser of Edwards 2001 on instance files, and the plan in force.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webfountain import commands
from webfountain.clock import SystemClock
from webfountain.errors import InputError
from webfountain.report.evolution import DAY, Observation, observe_store, observe_trace
from webfountain.report.evolution import evolution as analyse
from webfountain.report.findings import (
    QUALITIES,
    SOLVERS,
    packaged_instance,
    plan_table,
    read_table,
    solve_instance_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.report.evolution import Evolution, GroupEvolution

__all__ = ["evolution", "plan", "rank", "simulate"]

_FILE = click.Path(path_type=Path)


@click.command(
    epilog="Example: webfountain evolution --events kafka-events.parquet --pages kafka-pages.parquet --plots figures"
)
@click.option("--events", type=_FILE, multiple=True, help="A trace's events; again for each further trace.")
@click.option("--pages", type=_FILE, multiple=True, help="Its pages, in the same order.")
@click.option("--store", metavar="URL", help="The pages of a store instead of a trace.")
@click.option("--start", metavar="DATE", help="Watch a trace from this day on.  [default: its first event]")
@click.option("--days", type=click.IntRange(1), help="Watch it for so many days.  [default: to its last event]")
@click.option("--served", is_flag=True, help="Leave out pages of a trace that have no URL.")
@click.option(
    "--min-change",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Changes of a trace that leave a resemblance above 1 - R did not happen.",
)
@click.option(
    "--day",
    type=click.FloatRange(0, min_open=True),
    default=DAY,
    show_default=True,
    help="Seconds that count as a day of a store.",
)
@click.option(
    "--group-by",
    type=click.Choice(["site", "tld"]),
    default="site",
    show_default=True,
    help="A curve for each of these.",
)
@click.option("--plots", type=_FILE, metavar="DIR", help="Draw Figures 2, 4, 5 and 6 of Cho 2000 there.")
@commands.as_json
def evolution(store: str | None, group_by: Any, plots: Path | None, as_json: bool, **given: Any) -> None:
    """How pages change: intervals, lifespans, half-life, Poisson check (Cho 2000)."""
    if bool(given["events"]) == (store is not None):
        raise InputError("evolution: give --events F and --pages F, or --store URL")
    watch = _observed_store(store, given["day"]) if store is not None else _observed_traces(**given)
    found = analyse(watch, group_by=group_by)
    drawn: list[Path] = []
    if plots is not None:
        from webfountain.report.evolution import draw_evolution  # noqa: PLC0415  draws only when asked

        drawn = draw_evolution(found, plots)
    if as_json:
        commands.print_json(found)
    else:
        _print(found)
        for path in drawn:
            print(path)


def _observed_store(url: str, day: float) -> Observation:
    with commands.reading(url) as opened:
        return observe_store(opened.pages(), day=day)


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
        raise InputError(f"evolution: {len(events)} --events and {len(pages)} --pages; each trace has one of both")
    if len(events) > 1 and (start is None or days is None):
        raise InputError("evolution: several traces need --start and --days, so that they are watched together")
    begin = None if start is None else commands.time_of(start)
    watches = [
        observe_trace(event, page, start=begin, days=days, min_change=min_change, served=served)
        for event, page in zip(events, pages, strict=True)
    ]
    return Observation([span for watch in watches for span in watch.spans], watches[0].days, watches[0].start)


def _print(found: Evolution) -> None:
    print(f"{found.days:,} days from {commands.spell_time(found.start)} UTC")
    columns = {
        "": lambda row: row["name"],
        ">pages": lambda row: f"{row['group'].pages:,}",
        ">changes": lambda row: f"{row['group'].changes:,}",
        ">never changed": lambda row: f"{row['group'].never_changed:,}",
        ">half changed": lambda row: _days(row["group"]),
    }
    groups = {"all": found.all, **(found.groups if len(found.groups) > 1 else {})}
    commands.print_table(({"name": name, "group": group} for name, group in groups.items()), columns)
    for name, group in groups.items():
        _print_group(name, group)


def _days(group: GroupEvolution) -> str:
    return "never" if group.half_changed_days is None else f"{group.half_changed_days:,} days"


def _print_group(name: str, group: GroupEvolution) -> None:
    print(f"\n{name}")
    print("  change interval     " + _shares(group.change_interval))
    print("  lifespan, as seen   " + _shares(group.lifespan_seen))
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


@click.group()
def simulate() -> None:
    """Virtual crawlers over recorded webs."""


@simulate.command(
    epilog="Example: webfountain simulate revisit --events kafka-events.parquet --pages kafka-pages.parquet "
    "--start 2020-01-01 --days 365 --fetches-per-day 31"
)
@click.option("--events", type=_FILE, required=True, help="The trace's events, a parquet file.")
@click.option("--pages", type=_FILE, required=True, help="Its pages.")
@click.option("--served", is_flag=True, help="Leave out pages that have no URL.")
@click.option("--start", metavar="DATE", required=True, help="First day, 00:00 UTC.")
@click.option("--days", type=int, required=True, help="So many days of the trace.")
@click.option("--fetches-per-day", type=int, required=True, metavar="K", help="What a policy may spend.")
@click.option(
    "--policies", default="all", show_default=True, metavar="a,b,…", help="uniform, nutch-adaptive, fountain, …"
)
@click.option(
    "--min-change", type=float, default=0.05, show_default=True, metavar="R", help="Smaller changes did not happen."
)
@click.option("--exclude", metavar="REGEX", help="Leave out pages whose URL it finds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn at random.")
@click.option(
    "--daily", type=_FILE, metavar="FILE", help="Obsolete, alive and fetches of each day: .npz, .csv, .parquet."
)
@commands.as_json
def revisit(*, policies: str, as_json: bool, **given: Any) -> None:
    """Replay a change trace under revisit policies with K fetches a day."""
    from webfountain.simulate.revisit import simulate_revisit  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_revisit(policies=[name.strip() for name in policies.split(",")], **given)
    if as_json:
        commands.print_json(found)
        return
    print(f"{found['pages']:,} pages, {found['days']:,} days from {found['start']}, K = {found['fetches_per_day']:,}")
    columns = {
        "policy": lambda row: row["name"],
        ">obsolete": lambda row: f"{row['obsolete']:.4f}",
        ">fetches": lambda row: f"{row['fetches']:,}",
        ">changes found": lambda row: f"{row['changes_found']:,}",
    }
    commands.print_table(({"name": name, **row} for name, row in found["policies"].items()), columns)


@simulate.command(epilog="Example: webfountain simulate ordering --graph cnr-2000.npz --start 217849 --plot figures")
@click.option("--graph", type=_FILE, required=True, help="Successor lists: npz with indptr and indices.")
@click.option("--start", type=int, required=True, metavar="NODE", help="The page that is known first.")
@click.option(
    "--hot-share", type=float, metavar="S", help="The hot pages are this share, by PageRank.  [default: 0.01]"
)
@click.option("--hot-backlinks", type=int, metavar="G", help="The hot pages are those with as many backlinks.")
@click.option("--orderings", default="all", show_default=True, metavar="a,b,…", help="breadth-first, fountain, …")
@click.option(
    "--model",
    type=click.Choice(("threshold", "crawl-and-stop", "limited-buffer")),
    default="threshold",
    show_default=True,
    help="How an ordering is judged (Cho 1998).",
)
@click.option("--buffer-share", type=float, default=0.1, show_default=True, help="Pages that a limited buffer holds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn at random.")
@click.option("--plot", type=_FILE, metavar="DIR", help="Draw the curves into DIR, as PNG and SVG.")
@commands.as_json
def ordering(*, orderings: str, as_json: bool, **given: Any) -> None:
    """Crawl a link graph by several orderings: which finds the hot pages first?"""
    from webfountain.simulate.ordering import simulate_ordering  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_ordering(orderings=_listed(orderings), **given)
    if as_json:
        commands.print_json(found)
        return
    print(f"{found['nodes']:,} pages, {found['hot']:,} of them hot; share of them after each part of the crawl")
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "ordering": lambda row: row["name"],
        ">area": lambda row: f"{row['area']:.3f}",
        **{f">{at} %": partial(_share_at, at=at) for at in ("1", "5", "10", "20", "30", "50")},
        ">ranking, s": lambda row: f"{row['seconds']:.1f}",
    }
    commands.print_table(({"name": name, **row} for name, row in found["orderings"].items()), columns)


@simulate.command(epilog="Example: webfountain simulate urlcache --graph cnr-2000.npz --start 217849 --ants 16")
@click.option("--graph", type=_FILE, required=True, help="Successor lists: npz with indptr and indices.")
@click.option("--start", type=int, required=True, metavar="NODE", help="The page that is known first.")
@click.option("--ordering", default="breadth-first", show_default=True, help="Of the virtual crawl.")
@click.option(
    "--sizes", default="32,1024,32768,1048576", show_default=True, metavar="a,b,…", help="Entries of a cache."
)
@click.option("--policies", default="all", show_default=True, metavar="a,b,…", help="min, lru, clock, …")
@click.option("--ants", type=int, default=1, show_default=True, help="More than one: only links from ant to ant.")
@click.option("--static-start", type=int, metavar="NODE", help="Where STATIC's URLs were learnt.  [default: drawn]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn at random.")
@click.option("--plot", type=_FILE, metavar="DIR", help="Draw the miss rates into DIR, as PNG and SVG.")
@commands.as_json
def urlcache(*, sizes: str, policies: str, as_json: bool, **given: Any) -> None:
    """Miss rates of URL caches on the links of a virtual crawl (Broder 2003)."""
    from webfountain.simulate.ordering import simulate_urlcache  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_urlcache(sizes=_numbers("--sizes", sizes), policies=_listed(policies), **given)
    if as_json:
        commands.print_json(found)
        return
    print(f"{found['requests']:,} links to {found['distinct']:,} pages; miss rate by entries of a cache")
    names = list(found["policies"])
    rows = ({"size": size, **{name: found["policies"][name][size] for name in names}} for size in _sizes(found))
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        ">entries": lambda row: f"{int(row['size']):,}",
        **{f">{name}": partial(_rate_of, name=name) for name in names},
    }
    commands.print_table(rows, columns)


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise InputError(f"{option}: {text!r} are no whole numbers separated by commas") from None


def _sizes(found: dict[str, Any]) -> list[str]:
    return list(next(iter(found["policies"].values())))


def _share_at(row: Mapping[str, Any], *, at: str) -> str:
    return f"{row['share_at'][at]:.3f}"


def _rate_of(row: Mapping[str, Any], *, name: str) -> str:
    return f"{row[name]:.4f}"


@click.command(epilog="Example: webfountain rank --graph cnr-2000.npz --out scores.npy")
@click.option("--graph", type=_FILE, metavar="FILE.npz", help="A graph instead of a store: indptr and indices.")
@commands.store
@click.option(
    "--method",
    type=click.Choice(("pagerank", "trustrank", "backlinks")),
    default="pagerank",
    show_default=True,
    help="What a page is worth: by who links to it, from what is trusted, or by how many do.",
)
@click.option("--damping", type=float, metavar="D", help="Part that follows the links.  [default: 0.9, trustrank 0.85]")
@click.option(
    "--trusted", type=_FILE, metavar="FILE", help="trustrank's seeds: a URL, or a page's number, on each line."
)
@click.option("--out", type=_FILE, metavar="FILE.npy", help="Write all scores, in the order of the ids.")
@commands.as_json
def rank(*, graph: Path | None, store: str, as_json: bool, out: Path | None, **given: Any) -> None:
    """Rank pages by their links: PageRank, TrustRank or backlinks."""
    from webfountain.ranking.ranker import rank_file, rank_log  # noqa: PLC0415  scipy, 0.5 s

    if graph is not None:
        document = rank_file(graph, out=out, **given)
    else:
        document = rank_log(str(commands.existing_folder(store) / "links"), out=out, **given)
    if as_json:
        commands.print_json(document)
        return
    print(f"{document['nodes']:,} pages, {document['edges']:,} links, {document['iterations']} iterations")
    _print_top(document["top"])


def _print_top(top: Sequence[Sequence[Any]]) -> None:
    rows = ({"page": page, "score": score} for page, score in top)
    commands.print_table(rows, {"page": lambda row: str(row["page"]), ">score": lambda row: f"{row['score']:.3e}"})


_VERSIONS = ("v1", "v2", "v3")
_PERIODS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ">period": lambda row: str(row["period"]),
    ">recrawl": lambda row: f"{row['recrawl']:,}",
    ">done": lambda row: f"{row['recrawled']:,}",
    ">changed": lambda row: f"{row['changes']:,}",
    ">new": lambda row: f"{row['new']:,}",
    ">done ": lambda row: f"{row['crawled_new']:,}",
}
"""Columns of `plan show`: quotas of known and new pages, each with what was done of it."""
_PREDICTED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    ">obsolete, predicted": lambda row: f"{row['obsolete_oldest_first']:,.1f}",
    ">of known": lambda row: f"{row['known']:,.0f}",
}
"""And of strategies 1 to 3."""
_CYCLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "cycle from (UTC)": lambda row: commands.spell_time(row["begin"]),
    ">obsolete, foretold": lambda row: f"{row['obsolete']:.2%}",
    ">4 of 5 times between": lambda row: f"{row['low']:.2%} and {row['high']:.2%}",
    ">found": lambda row: f"{row['found']:.2%}" if "found" in row else "-",
}
"""Of fountain: what was foretold of each cycle, and what its fetches found."""
_CYCLES_SHOWN = 8


@click.group()
def plan() -> None:
    """Solve the optimisation model that decides how often which pages are crawled."""


@plan.command(epilog="Example: webfountain plan solve emt1 --periods 14 --out plan.npz")
@click.argument("instance", metavar="INSTANCE.toml")
@click.option("--strategy", metavar="NAME", help="One of the file's strategies.  [default: its first]")
@click.option("--version", type=click.Choice(_VERSIONS), default="v1", show_default=True, help="Of the page shares.")
@click.option("--periods", type=click.IntRange(1), metavar="T", help="Time periods instead of the file's.")
@click.option("--buckets", type=click.IntRange(1), metavar="B", help="Buckets instead of the file's.")
@click.option(
    "--solver", type=click.Choice(SOLVERS), default="auto", show_default=True, help="auto: the one that fits the model."
)
@click.option(
    "--quality", type=click.Choice(QUALITIES), default="normal", show_default=True, help="high: nearer, and slower."
)
@click.option("--out", metavar="FILE.npz", help="Write the plan: x (T, B) and z (T).")
@commands.as_json
def solve(*, instance: str, as_json: bool, **given: Any) -> None:
    """Solve an instance file of the form of emt1.toml; the name of one that comes with webfountain will do."""
    document = solve_instance_file(_file(instance), **given)
    commands.print_json(document) if as_json else print(plan_table(document))


@plan.command(epilog="Example: webfountain plan show --store rocksdb://news")
@commands.store
@commands.as_json
def show(store: str, as_json: bool) -> None:
    """The plan in force: quotas, prediction, and what happened so far."""
    from webfountain.report.state import plan_in_force  # noqa: PLC0415  numpy, 0.1 s

    with commands.reading(store) as opened:
        found = plan_in_force(opened, at=SystemClock().now())
    if as_json:
        commands.print_json(found)
    elif found is None:
        print(
            "no plan: pages are recrawled when their bucket says so; a plan needs "
            "cycle.capacity_pages_per_period and a period's measurements"
        )
    else:
        print(f"{found['words']}; cycle from {commands.spell_time(found['start'])} UTC")
        commands.print_table(found["by_period"], _PERIODS if found["fountain"] else _PERIODS | _PREDICTED)
        if found["foretold"] is not None:
            print()
            commands.print_table([*found["cycles"][-_CYCLES_SHOWN:], found["foretold"]], _CYCLES)


@plan.command(epilog="Example: webfountain plan findings")
@click.option("--instance", metavar="FILE.toml", help="Instead of the packaged emt1.")
@commands.as_json
def findings(instance: str | None, as_json: bool) -> None:
    """Tables 3 and 4 of Edwards 2001 beside ours, and each of its findings judged."""
    from webfountain.report.findings import findings as judge  # noqa: PLC0415  the optimiser, 0.5 s at start
    from webfountain.report.findings import findings_text  # noqa: PLC0415

    found = judge(packaged_instance("emt1") if instance is None else _file(instance))
    commands.print_json(found) if as_json else print(findings_text(found))


@plan.command(epilog="Example: webfountain plan figures drawn")
@click.argument("folder", metavar="DIR")
@click.option("--instance", metavar="FILE.toml", help="Instead of the packaged emt1.")
def figures(folder: str, instance: str | None) -> None:
    """Draw Figures 3 to 6 of Edwards 2001 into DIR, as PNG and SVG; about half a minute."""
    from webfountain.report.findings import draw_plans  # noqa: PLC0415  the optimiser, 0.5 s at start

    table = read_table(packaged_instance("emt1") if instance is None else _file(instance))
    for path in draw_plans(table, Path(folder), progress=lambda text: print(text, file=sys.stderr)):
        print(path)


def _file(instance: str) -> Path:
    """A file, or the one that comes with webfountain under this name."""
    return Path(instance) if Path(instance).suffix else packaged_instance(instance)
