"""The command `simulate`: what policies, orderings and URL caches would have done on recorded webs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webfountain.commands import options, printing
from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ordering", "revisit", "simulate", "urlcache"]

_FILE = click.Path(path_type=Path)


@click.group()
def simulate() -> None:
    """Run virtual crawlers over recorded webs."""


@simulate.command(
    epilog="Example: webfountain simulate revisit --events kafka-events.parquet --pages kafka-pages.parquet "
    "--start 2020-01-01 --days 365 --fetches-per-day 31"
)
@click.option("--events", type=_FILE, required=True, help="Events of the trace, a Parquet file.")
@click.option("--pages", type=_FILE, required=True, help="Pages of the trace, a Parquet file.")
@click.option("--served", is_flag=True, help="Leave out pages that have no URL.")
@click.option("--start", metavar="DATE", required=True, help="First day, 00:00 UTC.")
@click.option("--days", type=int, required=True, help="Number of days.")
@click.option("--fetches-per-day", type=int, required=True, metavar="K", help="Budget of each policy.")
@click.option(
    "--policies", default="all", show_default=True, metavar="a,b,…", help="uniform, nutch-adaptive, fountain, …"
)
@click.option(
    "--min-change", type=float, default=0.05, show_default=True, metavar="R", help="Ignore changes smaller than R."
)
@click.option("--exclude", metavar="REGEX", help="Leave out pages whose URL matches REGEX.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--daily",
    type=_FILE,
    metavar="FILE",
    help="Write obsolete pages, live pages and fetches of each day: .npz, .csv, .parquet.",
)
@options.as_json
def revisit(*, policies: str, as_json: bool, **given: Any) -> None:
    """Replay a change trace under revisit policies with K fetches a day."""
    from webfountain.lab.simulate.revisit import simulate_revisit  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_revisit(policies=[name.strip() for name in policies.split(",")], **given)
    if as_json:
        printing.print_json(found)
        return
    print(f"{found['pages']:,} pages, {found['days']:,} days from {found['start']}, K = {found['fetches_per_day']:,}")
    columns = {
        "policy": lambda row: row["name"],
        ">obsolete": lambda row: f"{row['obsolete']:.4f}",
        ">fetches": lambda row: f"{row['fetches']:,}",
        ">changes found": lambda row: f"{row['changes_found']:,}",
    }
    printing.print_table(({"name": name, **row} for name, row in found["policies"].items()), columns)
    print(f"no policy can go below {found['bound']:.4f}")


@simulate.command(epilog="Example: webfountain simulate ordering --graph cnr-2000.npz --start 217849 --plot figures")
@click.option("--graph", type=_FILE, required=True, help="Successor lists: npz with the arrays indptr and indices.")
@click.option("--start", type=int, required=True, metavar="NODE", help="Number of the page to start at.")
@click.option(
    "--hot-share", type=float, metavar="S", help="Hot pages: this share of the pages, by PageRank.  [default: 0.01]"
)
@click.option("--hot-backlinks", type=int, metavar="G", help="Hot pages: those with at least this many backlinks.")
@click.option("--orderings", default="all", show_default=True, metavar="a,b,…", help="breadth-first, fountain, …")
@click.option(
    "--model",
    type=click.Choice(("threshold", "crawl-and-stop", "limited-buffer")),
    default="threshold",
    show_default=True,
    help="Model of the crawl (Cho 1998).",
)
@click.option(
    "--buffer-share", type=float, default=0.1, show_default=True, help="Share of the pages that a limited buffer holds."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option("--plot", type=_FILE, metavar="DIR", help="Draw the curves into DIR, as PNG and SVG.")
@options.as_json
def ordering(*, orderings: str, as_json: bool, **given: Any) -> None:
    """Crawl a link graph by several orderings, and show which of them finds the hot pages first."""
    from webfountain.lab.simulate.crawl_order import simulate_ordering  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_ordering(orderings=_listed(orderings), **given)
    if as_json:
        printing.print_json(found)
        return
    print(
        f"{found['nodes']:,} pages, {found['hot']:,} of them hot; share of hot pages found after each part of the crawl"
    )
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "ordering": lambda row: row["name"],
        ">area": lambda row: f"{row['area']:.3f}",
        **{f">{at} %": partial(_share_at, at=at) for at in ("1", "5", "10", "20", "30", "50")},
        ">ranking, s": lambda row: f"{row['seconds']:.1f}",
    }
    printing.print_table(({"name": name, **row} for name, row in found["orderings"].items()), columns)


@simulate.command(epilog="Example: webfountain simulate urlcache --graph cnr-2000.npz --start 217849 --ants 16")
@click.option("--graph", type=_FILE, required=True, help="Successor lists: npz with the arrays indptr and indices.")
@click.option("--start", type=int, required=True, metavar="NODE", help="Number of the page to start at.")
@click.option("--ordering", default="breadth-first", show_default=True, help="Ordering of the virtual crawl.")
@click.option(
    "--sizes", default="32,1024,32768,1048576", show_default=True, metavar="a,b,…", help="Cache sizes, in entries."
)
@click.option("--policies", default="all", show_default=True, metavar="a,b,…", help="min, lru, clock, …")
@click.option(
    "--ants",
    type=int,
    default=1,
    show_default=True,
    help="Number of ants; with several, only links between ants count.",
)
@click.option(
    "--static-start",
    type=int,
    metavar="NODE",
    help="Start page of the crawl from which STATIC takes its URLs.  [default: random]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option("--plot", type=_FILE, metavar="DIR", help="Draw the miss rates into DIR, as PNG and SVG.")
@options.as_json
def urlcache(*, sizes: str, policies: str, as_json: bool, **given: Any) -> None:
    """Compute miss rates of URL caches on the links of a virtual crawl (Broder 2003)."""
    from webfountain.lab.simulate.cache_misses import simulate_urlcache  # noqa: PLC0415  scipy, 0.5 s

    found = simulate_urlcache(sizes=_numbers("--sizes", sizes), policies=_listed(policies), **given)
    if as_json:
        printing.print_json(found)
        return
    print(f"{found['requests']:,} links to {found['distinct']:,} pages; miss rate by entries of a cache")
    names = list(found["policies"])
    rows = ({"size": size, **{name: found["policies"][name][size] for name in names}} for size in _sizes(found))
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        ">entries": lambda row: f"{int(row['size']):,}",
        **{f">{name}": partial(_rate_of, name=name) for name in names},
    }
    printing.print_table(rows, columns)


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise InputError(f"{option}: {text!r} is not a list of whole numbers separated by commas") from None


def _sizes(found: dict[str, Any]) -> list[str]:
    return list(next(iter(found["policies"].values())))


def _share_at(row: Mapping[str, Any], *, at: str) -> str:
    return f"{row['share_at'][at]:.3f}"


def _rate_of(row: Mapping[str, Any], *, name: str) -> str:
    return f"{row[name]:.4f}"
