"""Comparison of a newly solved instance file with the tables, figures and findings of Edwards 2001.

The paper prints few constants, so the constants of an instance file are calibrated to the paper's results.

Source: Edwards, McCurley, Tomlin 2001, Tables 3 and 4, Figures 3-6 (PAPERS.md section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from webfountain.core.model import Trajectory, simulate_plan
from webfountain.lab.bucket_instances import build_instance
from webfountain.lab.solving import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from webfountain.core.arrays import Array
    from webfountain.core.optimizer import Quality

__all__ = ["FigureRow", "Finding", "Findings", "beside_text", "findings", "findings_text", "missed_figures"]

# Table 3 (v1) and Table 4 (v2), in millions of pages: objective, pages at the end, obsolete at the end.
_PRINTED = {
    ("Table 3", "1", "v1"): (325.92, 522.4, 30.86),
    ("Table 3", "2", "v1"): (17.22, 518.4, 16.09),
    ("Table 3", "3", "v1"): (21.38, 522.4, 17.02),
    ("Table 4", "1", "v2"): (377.44, 521.4, 35.34),
    ("Table 4", "3", "v2"): (25.00, 519.3, 19.72),
}
_FIGURES = ("objective", "pages_end", "obsolete_end")
_REPRODUCED = 0.05  # largest relative error of a reproduced figure
_ONCE = 0.02  # a bucket whose number of crawls differs more than this from a whole number counts as split


class FigureRow(TypedDict):
    """A number from the paper and our number, with the relative ``error`` of our number."""

    table: str
    strategy: str
    version: str
    figure: str
    paper: float
    ours: float
    error: float


class Finding(TypedDict):
    """One finding: the paper's statement, the measured values, and whether it holds."""

    finding: str
    measured: str
    held: bool


class Findings(TypedDict):
    rows: list[FigureRow]
    findings: list[Finding]
    not_reproduced: list[str]


@dataclass(frozen=True, slots=True)
class _SolvedRun:
    path: Trajectory
    crawls: Array  # (B,) crawls of a page of the bucket per cycle

    @property
    def obsolete(self) -> Array:
        """Return the (T,) numbers of obsolete crawled pages at the end of each period."""
        return np.asarray(self.path.y[1:].sum(axis=1), dtype=np.float64)


def findings(path: str | Path, *, quality: Quality = "normal", buckets: int | None = None) -> Findings:
    """Solve an instance file with strategies 1, 2 and 3 as the paper does, and check the paper's findings.

    If given, ``buckets`` replaces the number of buckets in the file.

    Raises InputError for an invalid value; the message names the file, the key and the value.
    """
    runs = _runs(read_table(path), quality, buckets)
    rows = [row for key in _PRINTED for row in _rows(key, runs[key[1:]])]
    return {"rows": rows, "findings": _judged(runs), "not_reproduced": missed_figures(rows)}


def findings_text(found: Findings) -> str:
    lines = ["table    strategy  figure           paper      ours   error"]
    for row in found["rows"]:
        name = f"{row['table']}  {row['strategy']} {row['version']}"
        lines.append(f"{name:18} {row['figure']:13}{row['paper']:9.2f} {row['ours']:9.2f} {100 * row['error']:+6.1f} %")
    errors = [abs(row["error"]) for row in found["rows"] if row["figure"] != "pages_end"]
    lines.append(f"mean error of objectives and obsolete pages: {100 * float(np.mean(errors)):.1f} %")
    for each in found["findings"]:
        lines.append(f"{'held    ' if each['held'] else 'NOT HELD'}  {each['finding']}: {each['measured']}")
    return "\n".join(lines + found["not_reproduced"])


def missed_figures(rows: list[FigureRow]) -> list[str]:
    """Return a sentence for each table with an error above 5 %."""
    sentences = []
    for table in ("Table 3", "Table 4"):
        off = [row for row in rows if row["table"] == table and abs(row["error"]) > _REPRODUCED]
        if off:
            which = ", ".join(f"{row['figure']} of strategy {row['strategy']} ({row['error']:+.0%})" for row in off)
            sentences.append(f"{table} is not reproduced by this instance: {which}.")
    return sentences or ["Both tables are reproduced within 5 % by this instance."]


def _runs(table: Mapping[str, object], quality: Quality, buckets: int | None) -> dict[tuple[str, str], _SolvedRun]:
    """Return the plans of the paper's figures, by strategy and version. The version "long" has twice the periods of the
    instance file.
    """
    wanted = [
        ("1", "v1"),
        ("2", "v1"),
        ("3", "v1"),
        ("1", "v2"),
        ("3", "v2"),
        ("1", "v1 long"),
        ("1", "v3 long"),
    ]
    return {key: _run(table, *key, quality, buckets) for key in wanted}


def _run(table: Mapping[str, object], strategy: str, label: str, quality: Quality, buckets: int | None) -> _SolvedRun:
    version, *long = label.split()
    instance = build_instance(table, strategy=strategy, version=version, buckets=buckets)
    if long:
        longer = 2 * instance.T
        instance = build_instance(table, strategy=strategy, version=version, periods=longer, buckets=buckets)
    from webfountain.core.optimizer import solve  # noqa: PLC0415  scipy

    plan = solve(instance, quality=quality)
    return _SolvedRun(simulate_plan(instance, plan.x, plan.z), plan.f.sum(axis=0))


def _rows(key: tuple[str, str, str], run: _SolvedRun) -> list[FigureRow]:
    table, strategy, version = key
    ours = (run.path.objective, float(run.path.b[-1].sum()), float(run.obsolete[-1]))
    return [
        FigureRow(
            table=table,
            strategy=strategy,
            version=version,
            figure=figure,
            paper=paper,
            ours=mine,
            error=mine / paper - 1.0,
        )
        for figure, paper, mine in zip(_FIGURES, _PRINTED[key], ours, strict=True)
    ]


def _judged(runs: dict[tuple[str, str], _SolvedRun]) -> list[Finding]:
    one, two, three = (runs[name, "v1"] for name in "123")
    return [*_crawl_findings(one, two, three), *_period_findings(one, two, three, runs)]


def _crawl_findings(one: _SolvedRun, two: _SolvedRun, three: _SolvedRun) -> list[Finding]:
    """Check the findings of Figure 3: how often the buckets are crawled."""
    once = float((np.abs(two.crawls - 1.0) <= _ONCE).mean())
    never = float((one.crawls <= _ONCE).mean())
    slowest = bool((np.diff(np.flatnonzero(one.crawls <= _ONCE)) == 1).all() and one.crawls[-1] <= _ONCE)
    left, more = float((three.crawls < 1.0 - _ONCE).mean()), float((three.crawls > 1.0 + _ONCE).mean())
    return [
        _finding("strategy 2 crawls each page exactly once", f"{once:.0%} of the buckets", once >= 0.95),
        _finding(
            "strategy 1 never crawls the slowest 40 %",
            f"{never:.0%}, {'the slowest' if slowest else 'but not only the slowest'}",
            slowest and abs(never - 0.40) <= 0.05,
        ),
        _finding(
            "strategy 1 crawls the fastest in many periods",
            f"up to {one.crawls.max():.0f} of {one.path.z.size}",
            bool(one.crawls.max() >= one.path.z.size / 2),
        ),
        _finding("strategy 3 crawls everything at least once", f"{left:.0%} of the buckets less often", left <= 0.01),
        _finding("strategy 3 crawls the fastest 18 % more than once", f"{more:.0%}", abs(more - 0.18) <= 0.03),
    ]


def _period_findings(
    one: _SolvedRun, two: _SolvedRun, three: _SolvedRun, runs: dict[tuple[str, str], _SolvedRun]
) -> list[Finding]:
    """Check the findings of Figures 4-6: obsolete pages per period."""
    below3 = int((one.obsolete < three.obsolete)[:-1].sum())
    below2 = int((one.obsolete < 0.75 * two.obsolete)[:-1].sum())
    before, last = one.obsolete.size - 1, runs["1", "v1 long"].obsolete
    worse = int((runs["1", "v2"].obsolete > one.obsolete).sum())
    ratio = runs["1", "v2"].path.objective / one.path.objective - 1.0
    rise = float(last[before + 1 :].mean() / last[before - 3 : before + 1].mean() - 1.0)
    half = float(runs["1", "v3 long"].obsolete.sum() / last.sum())
    return [
        _finding(
            "before the last period strategy 1 has fewer obsolete pages than 3",
            f"{below3} of {before} periods",
            below3 == before,
        ),
        _finding("and considerably fewer than 2 (by a quarter)", f"{below2} of {before} periods", below2 == before),
        _finding(
            "v2 is a little worse than v1 in every period",
            f"{worse} of {before + 1} periods, objective {ratio:+.0%}",
            worse >= before and ratio <= 0.20,
        ),
        _finding(
            "with twice as many periods the number of obsolete pages levels off",
            f"the second half is {rise:+.0%} compared with the end of the first",
            abs(rise) <= 0.20,
        ),
        _finding("v3 has about half the obsolete pages of v1", f"{half:.2f}", abs(half - 0.5) <= 0.1),
    ]


def _finding(finding: str, measured: str, held: bool) -> Finding:
    return Finding(finding=finding, measured=measured, held=held)


def beside_text(found: Mapping[str, Findings]) -> str:
    """Return the findings of several instances as text, one column per instance."""
    every = list(found.values())
    lines = ["table    strategy  figure           paper" + "".join(f"{name:>10}   error" for name in found)]
    for rows in zip(*(each["rows"] for each in every), strict=True):
        first = rows[0]
        name = f"{first['table']}  {first['strategy']} {first['version']}"
        ours = "".join(f" {row['ours']:9.2f} {100 * row['error']:+6.1f}%" for row in rows)
        lines.append(f"{name:18} {first['figure']:13}{first['paper']:9.2f}{ours}")
    lines.append("")
    lines.append("  ".join(f"{name:8}" for name in found) + "  finding")
    for findings in zip(*(each["findings"] for each in every), strict=True):
        marks = "  ".join("held    " if each["held"] else "NOT HELD" for each in findings)
        lines.append(f"{marks}  {findings[0]['finding']}: {' | '.join(each['measured'] for each in findings)}")
    for name, each in found.items():
        held = sum(one["held"] for one in each["findings"])
        lines.append(f"{name}: {held} of {len(each['findings'])} held. {' '.join(each['not_reproduced'])}")
    return "\n".join(lines)
