"""Summary at the end of a crawl, for people: pages found, changes, freshness, and where the pages are.

The numbers come from the document that `--report` writes. `added_up` combines the documents of many ants into one.
"""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from webfountain.errors import StoreError
from webfountain.records import FETCHED, OutcomeKind
from webfountain.report.plurals import counted
from webfountain.report.progress import spell_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from webfountain.store.answers import Statistics

__all__ = ["added_up", "places", "summary"]

_FOUND: Final = tuple(kind for kind in get_args(OutcomeKind) if kind in FETCHED)
_REASONS: Final = {
    "finished": "everything was fetched",
    "idle": "nothing is left to fetch",
    "max_pages": "its pages are fetched (--max-pages)",
    "max_seconds": "its time is over (--max-seconds)",
    "shutdown": "stopped by a signal",
}
_HINTS: Final = {
    "javascript": "built by scripts, which are not run",
    "login": "behind a log-in",
    "consent": "behind a question for consent",
}
_PARTS: Final = (
    "seconds",
    "startup_seconds",
    "finish_reason",
    "waiting",
    "pages",
    "sites",
    "url_cache_hit_rate",
)
"""Entries of a report that must not be summed over several ants."""


def summary(report: Mapping[str, Any]) -> str:
    """Return a summary of a crawl in lines of text. `report` is the document that `--report` writes."""
    reason = report["finish_reason"]
    pages, seconds = report["pages_fetched"], report["seconds"]
    rate = pages / seconds if seconds else 0.0
    cpu = 1000 * report["cpu_seconds"] / pages if pages else 0.0
    status = ", ".join(f"{code} {count:,}x" for code, count in sorted(report["by_status"].items()))
    lines = {
        "ended": f"{_REASONS.get(reason, reason)}, after {spell_seconds(seconds)}",
        "fetched": f"{counted(pages, 'page')} of {counted(report['sites'], 'site')}, {rate:.1f} pages/s, "
        f"{cpu:.1f} ms of CPU per page",
        "found": _outcomes(report, _FOUND) or "nothing",
        "answers": status or "none",
        "links": f"{report['links_seen']:,} seen, {counted(report['urls_discovered'], 'new URL')} among them, "
        f"{report['links_out_of_scope']:,} out of scope",
        "refused": f"{report['refused_by_robots']:,} by robots.txt" if report["refused_by_robots"] else "",
        "failed": _errors(report),
        "hints": ", ".join(
            f"{counted(many, 'page')} {_HINTS[word]}" for word, many in report.get("by_hint", {}).items()
        ),
        "waiting": _waiting(report["waiting"], idle=reason == "idle"),
        **_troubles(report),
        "cost": f"{report['peak_rss_bytes'] / 1e6:.0f} MB of memory at most, {report['cpu_seconds']:.1f} s of CPU",
    }
    return "\n".join(f"  {name:<9}{text}" for name, text in lines.items() if text)


def places(*, store: str, repository: Path, example: str | None) -> str:
    """Return lines that say where the store and the copies are, and which commands show the pages."""
    option = f"--store {store}"
    commands = [
        (f"webfountain status {option}", "counts, rate, freshness"),
        (f"webfountain pages {option}", "every known URL"),
        (f"webfountain texts --jsonl {option}", "the text, for an index"),
    ]
    if example is not None:
        commands.append((f"webfountain cat {example} {option}", "one page"))
    width = max(len(command) for command, _ in commands)
    lines = [f"  {'store':<9}{store}", f"  {'copies':<9}{repository} (WARC files)"]
    return "\n".join([*lines, *(f"  {command:<{width}}  # {what}" for command, what in commands)])


def _waiting(urls: int, *, idle: bool) -> str:
    """Return the number of never-crawled URLs in words. `idle` is True if the crawl ended because nothing more could be
    fetched.
    """
    why = "that cannot be fetched now (a dead host, an unreachable robots.txt)" if idle else "not fetched yet"
    return f"{counted(urls, 'known URL')} {why}" if urls else ""


def _errors(report: Mapping[str, Any]) -> str:
    """Return how often page fetches failed with each error or status, as text."""
    status = {f"status {code}": many for code, many in report["by_status"].items() if int(code) >= 400}
    found = sorted({**report.get("by_error", {}), **status}.items(), key=lambda each: -each[1])
    return ", ".join(f"{word} {many:,}x" for word, many in found) if report["failed"] else ""


def _troubles(report: Mapping[str, Any]) -> dict[str, str]:
    """Return a line about unreachable sites and a line about failed seeds, if the report lists any."""
    from webfountain.report.troubles import Troubles  # noqa: PLC0415  numpy, which a mere summary does not need

    if "unreachable" not in report:
        return {}
    found = msgspec.convert(report, Troubles)
    return {"errors": found.unreachable.words(), "seeds": found.seed_words()}


def _outcomes(report: Mapping[str, Any], kinds: Iterable[str]) -> str:
    return ", ".join(f"{report[kind]:,} {kind.replace('_', ' ')}" for kind in kinds if report[kind])


def added_up(
    reports: Sequence[Mapping[str, Any]],
    stored: Statistics | None,
    *,
    seconds: float,
    failed: Sequence[str],
    stopped: bool,
) -> dict[str, Any]:
    """Combine the reports of all ants into one report.

    If the store did not answer (`stored` is None), the page states come from the ant that saw the most pages.

    Raises
    ------
    StoreError
        if no ant has reported anything.
    """
    from webfountain.core.url_cache import hit_rate  # noqa: PLC0415  numpy costs 0.1 s of start-up

    if not reports:
        raise StoreError("; ".join(failed) or "no ant has sent a report")
    total: dict[str, Any] = {}
    for name, value in reports[0].items():
        if name in _PARTS:
            continue
        total[name] = dict(_summed(name, reports)) if isinstance(value, dict) else sum(each[name] for each in reports)
    reasons = {each["finish_reason"] for each in reports}
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = time.process_time()
    return {
        **total,
        "url_cache_hit_rate": hit_rate(
            total["duplicates_by_cache"], total["urls_discovered"] + total["duplicates_by_store"]
        ),
        **_states(reports, stored),
        "seconds": seconds,
        "cpu_seconds": own + children.ru_utime + children.ru_stime,
        "startup_seconds": min(each["startup_seconds"] for each in reports),
        "finish_reason": "shutdown" if stopped else reasons.pop() if len(reasons) == 1 else "finished",
        "ants": len(reports) + len(failed),
        "ants_failed": list(failed),
    }


def _states(reports: Sequence[Mapping[str, Any]], stored: Statistics | None) -> dict[str, Any]:
    """Return the numbers of pages (by state), sites and waiting URLs."""
    if stored is None:
        latest = max(reports, key=lambda each: sum(each["pages"].values()))
        return {name: latest[name] for name in ("waiting", "pages", "sites")}
    return {
        "waiting": stored.pages["never-crawled"] + stored.immediate,
        "pages": dict(stored.pages),
        "sites": stored.sites,
    }


def _summed(name: str, reports: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    keys = sorted({key for each in reports for key in each[name]})
    return ((key, sum(each[name].get(key, 0) for each in reports)) for key in keys)
