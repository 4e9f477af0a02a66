"""The command `status`: counts by state, rate, estimated freshness, the current plan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from webfountain.clock import SystemClock
from webfountain.commands import options, printing
from webfountain.frontier.cluster.ant_notes import ants_of
from webfountain.report import status as report_status
from webfountain.report.plurals import counted
from webfountain.report.store_reading import existing_folder, reading
from webfountain.report.troubles import Troubles, troubles_of
from webfountain.store.contract import PLAN
from webfountain.store.locations import is_in_use, without_password
from webfountain.terminal_text import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.store.contract import FrontierStore

__all__ = ["status"]

_FEW_ANTS: Final = 16
"""Maximum number of ants for which the output shows how many sites each ant has."""


@click.command(epilog="Example: webfountain status --store rocksdb://news")
@options.store
@options.as_json
def status(store: str, as_json: bool) -> None:
    """Show counts by state, rate, estimated freshness and the current plan."""
    with reading(store) as opened:
        found = report_status.status(opened, at=SystemClock().now())
        plan = _plan(opened)
        ants = None if opened.claims is None else ants_of(opened.claims, opened.claims.time() or SystemClock().now())
        troubles = troubles_of(opened, year=time.gmtime().tm_year)
    is_crawled = is_in_use(existing_folder(store)) if ants is None else bool(ants)
    found = {"store": without_password(store), **found, "plan": plan, "crawling": is_crawled}
    found |= msgspec.to_builtins(troubles)
    if ants is not None:
        found["ants"] = [
            {
                "name": name,
                "sites": ant.sites,
                "addresses": ant.addresses,
                "in_flight": ant.in_flight,
                "idle_since": ant.idle_since,
            }
            for name, ant in sorted(ants.items())
        ]
    printing.print_json(found) if as_json else _print_status(found, troubles)


def _plan(store: FrontierStore) -> dict[str, Any] | None:
    """Return the current plan, or None before the first plan."""
    if store.board.value(PLAN) is None:
        return None
    from webfountain.report.plan import plan_in_force  # noqa: PLC0415  numpy, 0.1 s

    return plan_in_force(store, at=SystemClock().now())


def _print_status(found: Mapping[str, Any], troubles: Troubles) -> None:
    counts = ", ".join(f"{count:,} {state}" for state, count in found["pages"].items() if count)
    fresh = (
        "unknown yet"
        if found["freshness"] is None
        else f"{found['freshness']:.1%} of the known pages ({_basis(found)})"
    )
    rate = f"{found['pages_per_second']:.2f} pages/s since {printing.spell_time(found['since'])} UTC"
    lines = {
        "store": found["store"],
        "known": counted(found["known"], "URL") + (f": {counts}" if counts else ""),
        "sites": f"{found['sites']:,}, {found['active_sites']:,} active now",
        "leased": f"{counted(found['in_flight'], 'URL')}; {found['immediate']:,} on the immediate queue",
        "rate": f"{rate}: {counted(found['fetches'], 'fetch')}, {found['changes']:,} found a change",
        "fresh": fresh,
        "limit": f"{found['limit']}, by the crawl's last report" if found["limit"] and found["crawling"] else "",
        "plan": "none: each page's bucket decides" if found["plan"] is None else found["plan"]["words"],
    }
    if (ants := found.get("ants")) is not None:
        lines["ants"] = _ants(ants)
    if (domains := found["domains"]) is not None:
        text = f"{domains['busy']:,} busy, {domains['blocked']:,} blocked; each may use {domains['share']:.0%}"
        lines["domains"] = f"{text} of the period's fetches ({printing.spell_time(domains['time'])} UTC)"
    lines |= {"errors": troubles.unreachable.words(), "seeds": troubles.seed_words()}
    for name, text in lines.items():
        if text:
            print(f"{name:<8}{shown(text)}")


def _ants(ants: Sequence[Mapping[str, Any]]) -> str:
    """Return in words how many ants are running, and how many sites each ant has."""
    if not ants:
        return "none is running"
    sites = sorted((ant["sites"] for ant in ants), reverse=True)
    each = ", ".join(map(str, sites)) if len(sites) <= _FEW_ANTS else f"{sites[0]} to {sites[-1]}"
    noun = "site" if sites == [1] else "sites"
    idle = sum(ant["idle_since"] is not None for ant in ants)
    flying = sum(ant["in_flight"] for ant in ants)
    addresses = sum(ant["addresses"] for ant in ants)
    if 0 < addresses < len(ants):
        # One ant has all sites of an address, so further ants cannot have sites.
        each += f" {noun} at {addresses} {'address' if addresses == 1 else 'addresses'}, each crawled by one ant"
    else:
        each += f" {noun}"
    return f"{len(ants)} running with {each}; {counted(flying, 'request')} in flight" + (
        f"; {idle} idle" if idle else ""
    )


def _basis(found: Mapping[str, Any]) -> str:
    """Return in words how the share of fresh pages was estimated, such as "estimated from 120 fetches"."""
    since = f"since {printing.spell_time(found['since'])} UTC"
    fetches = found["fetches"]
    parts = [f"estimated from {counted(fetches, 'fetch')} {since}" if fetches else f"estimated without a fetch {since}"]
    if found["failing"]:
        many = found["failing"]
        parts.append(f"{counted(many, 'page')} that failed last {'counts' if many == 1 else 'count'} as obsolete")
    if found["freshness_at"] is not None:
        cycles = (
            f"from {counted(found['freshness_cycles'], 'cycle')}"
            if found["freshness_cycles"]
            else "before the first whole cycle"
        )
        parts.append(
            f"{found['freshness_low']:.1%} to {found['freshness_high']:.1%} with a probability of 80 %, {cycles}"
        )
    if not found["crawling"]:
        if (at := found["freshness_at"]) is not None:
            parts.append(f"as of {printing.spell_time(at)} UTC")
        parts.append("no crawl is running, so the share falls")
    return "; ".join(parts)
