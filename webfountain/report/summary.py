"""The readable end of a crawl: what was found, what changed, how fresh the copy is, where the pages lie.

Made from the document that `--report` writes (DESIGN.md section 7) and, for the demonstration, from measurements
against the generated web's own truth. Text for people; programs read the document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webfountain.report.progress import spell_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Sample", "freshness_summary", "places", "summary"]

_FOUND: Final = ("new", "changed", "minor", "same", "not_modified", "redirected", "gone", "failed")
_REASONS: Final = {
    "finished": "all is asked",
    "idle": "nothing is left to do",
    "max_pages": "--max-pages is reached",
    "max_seconds": "--max-seconds are over",
    "shutdown": "stopped by a signal",
}
_BAR: Final = 40


class Sample(NamedTuple):
    """How fresh the copy was at one moment, by the server's own truth."""

    period: int
    """Time periods since the crawl began."""
    pages: int
    """Pages that existed then."""
    fresh: float
    """Share of them whose newest copy had the bytes that the server would have sent."""


def summary(report: Mapping[str, Any]) -> str:
    """What a crawl found, from its report document; lines of text."""
    reason = report["finish_reason"]
    pages, seconds = report["pages_fetched"], report["seconds"]
    rate = pages / seconds if seconds else 0.0
    cpu = 1000 * report["cpu_seconds"] / pages if pages else 0.0
    status = ", ".join(f"{code} {count:,}x" for code, count in sorted(report["by_status"].items()))
    lines = {
        "ended": f"{_REASONS.get(reason, reason)}, after {spell_seconds(seconds)}",
        "fetched": f"{pages:,} pages of {report['sites']:,} sites, {rate:.1f} pages/s, {cpu:.1f} ms of CPU a page",
        "found": _counts(report, _FOUND) or "nothing",
        "answers": status or "none",
        "links": f"{report['links_seen']:,} seen, {report['urls_discovered']:,} new URLs among them, "
        f"{report['links_out_of_scope']:,} out of scope",
        "refused": f"{report['refused_by_robots']:,} by robots.txt" if report["refused_by_robots"] else "",
        "waiting": _waiting(report["waiting"], idle=reason == "idle"),
        "cost": f"{report['peak_rss_bytes'] / 1e6:.0f} MB of memory at most, {report['cpu_seconds']:.1f} s of CPU",
    }
    return "\n".join(f"  {name:<9}{text}" for name, text in lines.items() if text)


def freshness_summary(samples: Sequence[Sample]) -> str:
    """The measured freshness, a bar for each sample."""
    if not samples:
        return "  not measured: the crawl ended before the first period did"
    last = samples[-1]
    lines = [f"  {last.fresh:.1%} of the {last.pages:,} pages that exist now are held exactly as the server has them"]
    for sample in samples:
        full = round(sample.fresh * _BAR)
        lines.append(f"  period {sample.period:>3}  {'█' * full}{'·' * (_BAR - full)} {sample.fresh:6.1%}")
    return "\n".join(lines)


def places(*, store: str, repository: Path, example: str | None) -> str:
    """Where the pages lie, and the commands to look at them; `example` is the URL of one page."""
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
    """Never-crawled URLs: of an idle crawl, those of dead hosts and unreachable robots.txt."""
    why = "that cannot be asked now (a dead host, an unreachable robots.txt)" if idle else "not asked yet"
    return f"{urls:,} known URLs {why}" if urls else ""


def _counts(report: Mapping[str, Any], kinds: Iterable[str]) -> str:
    return ", ".join(f"{report[kind]:,} {kind.replace('_', ' ')}" for kind in kinds if report[kind])
