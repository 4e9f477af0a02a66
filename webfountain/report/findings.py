"""The paper's tables, figures and findings beside ours, from an instance file solved anew.

Tables 3 and 4 with the error of each figure, each finding judged.
Edwards 2001 prints few constants of its instance, so an instance file is a calibration, and this is its test: every
figure is compared, every finding of section 5 is marked held or not by the program, and what a calibration does not
reproduce is said in words.

Source: Edwards, McCurley, Tomlin 2001, Tables 3 and 4, Figures 3-6 (PAPERS.md section 2).

Figures 3 to 6 of Edwards 2001, from plans solved anew for an instance file; PNG and SVG. What is drawn is what the
optimiser returns for the file's constants, beside which the paper's own curves can be held: the model's constants are
not printed in it, so shapes should agree and numbers need not.

The door to the optimiser: solve an instance file, as `plan solve` prints it. Place in the walk of a crawl-history
record (DESIGN 4): beside it, for instances from files; a live crawl's plans are solved by the controller. It reads
the file, times the solve and writes the plan; all mathematics is in `core`. The instances that come with the package
are in the folder ``instances`` beside this file.
"""

from __future__ import annotations

import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np

from webfountain.core.model import Array, Trajectory, build_instance, simulate_plan, strategy_names
from webfountain.errors import InputError
from webfountain.report.evolution import COLOURS, figure, save

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.core.model import Instance
    from webfountain.core.optimizer import Quality, Solution, Solver

__all__ = [
    "QUALITIES",
    "SOLVERS",
    "Findings",
    "Version",
    "draw_plans",
    "findings",
    "findings_text",
    "missed_figures",
    "packaged_instance",
    "plan_table",
    "read_table",
    "solve_instance_file",
]

Version = Literal["v1", "v2", "v3"]
SOLVERS = ("auto", "slsqp", "calendars")
QUALITIES = ("normal", "high")


@dataclass(frozen=True, slots=True)
class _TimedSolution:
    instance: Instance
    solution: Solution
    seconds: float


def packaged_instance(name: str) -> Path:
    """The file of an instance that comes with the package: "emt1", "emt2".

    Raises InputError when there is none of this name.
    """
    folder = Path(__file__).parent / "instances"
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.toml")))
        raise InputError(f"instance: {name!r} is not one of {known}")
    return path


def read_table(path: str | Path) -> dict[str, object]:
    """The table of an instance file. Raises InputError when it cannot be read or is not TOML."""
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: {error}") from error


def solve_instance_file(
    path: str | Path,
    *,
    strategy: str | None = None,
    version: str = "v1",
    periods: int | None = None,
    buckets: int | None = None,
    solver: Solver = "auto",
    quality: Quality = "normal",
    out: str | Path | None = None,
) -> dict[str, object]:
    """Solve an instance file; the answer is the JSON document of `plan solve` (DESIGN 7).

    ``strategy`` is a name of the file, the first one when absent. ``out`` is an .npz file that gets the plan: x
    (T, B) and z (T,) in the file's pages. ``seconds`` is the solve without imports.

    Raises InputError naming file, key and value.
    """
    if solver not in SOLVERS:
        raise InputError(f"solver: {solver!r} is not one of {', '.join(SOLVERS)}")
    if quality not in QUALITIES:
        raise InputError(f"quality: {quality!r} is not one of {', '.join(QUALITIES)}")
    table = read_table(path)
    names = strategy_names(table)
    chosen = names[0] if strategy is None and names else strategy or ""
    try:
        instance = build_instance(table, strategy=chosen, version=version, periods=periods, buckets=buckets)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    solved = _timed(instance, solver, quality)
    if out is not None:
        _write(out, solved.solution)
    return _document(solved)


def plan_table(document: Mapping[str, object]) -> str:
    """The document of `plan solve` as lines to read: the figures, then how often the buckets are crawled."""
    lines = [f"{key:16}{_figure(value)}" for key, value in document.items() if not isinstance(value, list)]
    crawls = document["crawls_per_bucket"]
    assert isinstance(crawls, list)
    lines.append("crawls in the cycle, mean over a tenth of the buckets each, fastest first:")
    lines.append("  " + "  ".join(f"{sum(part) / len(part):.2f}" for part in _tenths(crawls)))
    return "\n".join(lines)


def _timed(instance: Instance, solver: Solver, quality: Quality) -> _TimedSolution:
    from webfountain.core.optimizer import solve  # noqa: PLC0415 (scipy.optimize: 0.3 s, kept out of the door)

    begin = time.perf_counter()
    solution = solve(instance, solver=solver, quality=quality)
    return _TimedSolution(instance, solution, time.perf_counter() - begin)


def _document(solved: _TimedSolution) -> dict[str, object]:
    from webfountain.core.model import simulate_plan  # noqa: PLC0415 (numpy: see _timed)

    plan = solved.solution
    path = simulate_plan(solved.instance, plan.x, plan.z)
    return {
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "seconds": solved.seconds,
        "capacity_excess": plan.excess,
        "obsolete_end": float(path.y[-1].sum()),
        "pages_end": float(path.b[-1].sum()),
        "new_end": float(path.n[-1]),
        "crawls_per_bucket": plan.f.sum(axis=0).tolist(),
        "status": plan.status,
        "message": plan.message,
    }


def _write(out: str | Path, plan: Solution) -> None:
    import numpy as np  # noqa: PLC0415

    try:
        with Path(out).open("wb") as file:
            np.savez(file, x=plan.x, z=plan.z)
    except OSError as error:
        raise InputError(f"{out}: the plan cannot be written: {error}") from error


def _figure(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _tenths(crawls: list[float]) -> list[list[float]]:
    """The list in up to ten parts of about the same size."""
    count = min(10, len(crawls))
    return [crawls[len(crawls) * k // count : len(crawls) * (k + 1) // count] for k in range(count)]


# Table 3 (v1) and Table 4 (v2), in millions of pages: objective, pages at the end, obsolete at the end.
_PRINTED = {
    ("Table 3", "1", "v1"): (325.92, 522.4, 30.86),
    ("Table 3", "2", "v1"): (17.22, 518.4, 16.09),
    ("Table 3", "3", "v1"): (21.38, 522.4, 17.02),
    ("Table 4", "1", "v2"): (377.44, 521.4, 35.34),
    ("Table 4", "3", "v2"): (25.00, 519.3, 19.72),
}
_FIGURES = ("objective", "pages_end", "obsolete_end")
_REPRODUCED = 0.05  # largest error of a figure that counts as reproduced
_ONCE = 0.02  # a crawl more or less than this from whole is a split


class FigureRow(TypedDict):
    """One printed figure beside ours; ``error`` is relative."""

    table: str
    strategy: str
    version: str
    figure: str
    paper: float
    ours: float
    error: float


class Finding(TypedDict):
    """One finding: what the paper says, what is measured here, and whether it holds."""

    finding: str
    measured: str
    held: bool


class Findings(TypedDict):
    """All of it: figures, findings, and sentences about what is not reproduced."""

    rows: list[FigureRow]
    findings: list[Finding]
    not_reproduced: list[str]


@dataclass(frozen=True, slots=True)
class _SolvedRun:
    path: Trajectory
    crawls: Array  # (B,) crawls of a page of the bucket in the cycle

    @property
    def obsolete(self) -> Array:
        """Obsolete pages (T,) at the end of each period, never-crawled ones left out."""
        return np.asarray(self.path.y[1:].sum(axis=1), dtype=np.float64)


def findings(path: str | Path, *, quality: Quality = "normal", buckets: int | None = None) -> Findings:
    """Solve the paper's runs on an instance file with strategies 1, 2 and 3, and judge them.

    ``buckets`` replaces the file's: fewer are quicker and a little coarser.

    Raises InputError naming file, key and value.
    """
    runs = _runs(read_table(path), quality, buckets)
    rows = [row for key in _PRINTED for row in _rows(key, runs[key[1:]])]
    return {"rows": rows, "findings": _judged(runs), "not_reproduced": missed_figures(rows)}


def findings_text(found: Findings) -> str:
    """The findings as lines to read."""
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
    """A plain sentence for each table with a figure that is off by more than 5 %."""
    sentences = []
    for table in ("Table 3", "Table 4"):
        off = [row for row in rows if row["table"] == table and abs(row["error"]) > _REPRODUCED]
        if off:
            which = ", ".join(f"{row['figure']} of strategy {row['strategy']} ({row['error']:+.0%})" for row in off)
            sentences.append(f"{table} is not reproduced by this instance: {which}.")
    return sentences or ["Both tables are reproduced within 5 % by this instance."]


def _runs(table: Mapping[str, object], quality: Quality, buckets: int | None) -> dict[tuple[str, str], _SolvedRun]:
    """The plans of the paper's figures, by strategy and version; "long" has twice the periods."""
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
    """Figure 3: how often the buckets are crawled."""
    once = float((np.abs(two.crawls - 1.0) <= _ONCE).mean())
    never = float((one.crawls <= _ONCE).mean())
    slowest = bool((np.diff(np.flatnonzero(one.crawls <= _ONCE)) == 1).all() and one.crawls[-1] <= _ONCE)
    left, more = float((three.crawls < 1.0 - _ONCE).mean()), float((three.crawls > 1.0 + _ONCE).mean())
    return [
        _finding("strategy 2 crawls each page exactly once", f"{once:.0%} of the buckets", once >= 0.95),
        _finding(
            "strategy 1 never crawls the slowest 40 %",
            f"{never:.0%}, {'the slowest' if slowest else 'not all of them the slowest'}",
            slowest and abs(never - 0.40) <= 0.05,
        ),
        _finding(
            "strategy 1 crawls the fastest in many periods",
            f"up to {one.crawls.max():.0f} of {one.path.z.size}",
            bool(one.crawls.max() >= one.path.z.size / 2),
        ),
        _finding("strategy 3 crawls everything at least once", f"{left:.0%} less often", left <= 0.01),
        _finding("strategy 3 crawls the fastest 18 % more than once", f"{more:.0%}", abs(more - 0.18) <= 0.03),
    ]


def _period_findings(
    one: _SolvedRun, two: _SolvedRun, three: _SolvedRun, runs: dict[tuple[str, str], _SolvedRun]
) -> list[Finding]:
    """Figures 4-6: obsolete pages in the periods."""
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
            "with twice the periods the obsolete count flattens",
            f"the second half is {rise:+.0%} on the end of the first",
            abs(rise) <= 0.20,
        ),
        _finding("v3 has about half the obsolete pages of v1", f"{half:.2f}", abs(half - 0.5) <= 0.1),
    ]


def _finding(finding: str, measured: str, held: bool) -> Finding:
    return Finding(finding=finding, measured=measured, held=held)


class _Case(NamedTuple):
    """One plan: strategy, version, number of periods."""

    strategy: str
    version: str = "v1"
    periods: int = 14


class _Plan(NamedTuple):
    crawls: list[float]
    """Of each bucket, the mean number of crawls of a page in the cycle."""
    obsolete: list[float]
    """Pages obsolete at the end of each period, in the file's unit (millions)."""


_STRATEGIES = (_Case("1"), _Case("2"), _Case("3"))
_VERSIONS = (_Case("1"), _Case("1", "v2"), _Case("3"), _Case("3", "v2"))
_LENGTHS = (_Case("1"), _Case("1", periods=28), _Case("1", "v3"), _Case("1", "v3", 28))


def draw_plans(
    table: dict[str, object], folder: Path, *, progress: Callable[[str], object] = lambda text: None
) -> list[Path]:
    """Solve the plans of Figures 3 to 6 and draw them into `folder`; the paths written.

    Parameters
    ----------
    table : an instance file with strategies "1", "2" and "3" (`plans.read_table`)
    progress : is told each plan before it is solved, in a few words

    Raises
    ------
    InputError
        when the table lacks something, matplotlib is not installed, or the folder cannot be written.
    """
    # Looked for before eight plans are solved in vain.
    figure("", 1)
    plans = {}
    for case in dict.fromkeys((*_STRATEGIES, *_VERSIONS, *_LENGTHS)):
        progress(f"strategy {case.strategy}, version {case.version[1:]}, {case.periods} periods")
        plans[case] = _solved(table, case)
    drawn = {
        "edwards-figure-3-crawls": _crawls(plans),
        "edwards-figure-4-strategies": _obsolete(
            plans, _STRATEGIES, "Obsolete pages by strategy (Edwards 2001, Figure 4)"
        ),
        "edwards-figure-5-versions": _obsolete(
            plans, _VERSIONS, "Obsolete pages by distribution of change rates (Edwards 2001, Figure 5)"
        ),
        "edwards-figure-6-lengths": _obsolete(
            plans, _LENGTHS, "Obsolete pages settle down over time (Edwards 2001, Figure 6)"
        ),
    }
    return [path for name, each in drawn.items() for path in save(each, folder, name)]


def _solved(table: dict[str, object], case: _Case) -> _Plan:
    instance = build_instance(table, strategy=case.strategy, version=case.version, periods=case.periods)
    from webfountain.core.optimizer import solve  # noqa: PLC0415  scipy

    solution = solve(instance)
    path = simulate_plan(instance, solution.x, solution.z)
    # y[0] is the state before the first period.
    obsolete = path.y.sum(axis=1).tolist()[-case.periods :]
    return _Plan(solution.f.sum(axis=0).tolist(), obsolete)


def _name(case: _Case, cases: Sequence[_Case]) -> str:
    """What tells a case from the others of its figure."""
    parts = [f"strategy {case.strategy}"]
    if len({each.version for each in cases}) > 1:
        parts.append(f"version {case.version[1:]}")
    if len({each.periods for each in cases}) > 1:
        parts.append(f"{case.periods} periods")
    return ", ".join(parts)


def _crawls(plans: dict[_Case, _Plan]) -> Any:
    drawn, panels = figure("Crawls of a page in one cycle, by how fast it changes (Edwards 2001, Figure 3)", 3)
    top = max(max(plans[case].crawls) for case in _STRATEGIES)
    for number, (each, case) in enumerate(zip(panels, _STRATEGIES, strict=True)):
        crawls = plans[case].crawls
        each.step(range(len(crawls)), crawls, where="mid", color=COLOURS[number], linewidth=1.4)
        never = sum(count < 0.5 for count in crawls) / len(crawls)
        often = sum(count > 1.5 for count in crawls) / len(crawls)
        each.set_title(f"strategy {case.strategy}: {never:.0%} never, {often:.0%} more than once", fontsize=10)
        each.set_ylim(-0.02 * top, 1.05 * top)
        each.set_xlabel("bucket, the fastest first")
    panels[0].set_ylabel("crawls in the cycle")
    return drawn


def _obsolete(plans: dict[_Case, _Plan], cases: Sequence[_Case], title: str) -> Any:
    drawn, (each,) = figure(title, 1)
    drawn.set_figwidth(8)
    by_length = len({case.periods for case in cases}) > 1
    keys = [case.version if by_length else case.strategy for case in cases]
    for number, (case, key) in enumerate(zip(cases, keys, strict=True)):
        # What is compared shares a colour: solid first, dashed then.
        colour, style = COLOURS[list(dict.fromkeys(keys)).index(key)], "--" if key in keys[:number] else "-"
        obsolete, label = plans[case].obsolete, _name(case, cases)
        periods = range(1, len(obsolete) + 1)
        each.plot(periods, obsolete, style, color=colour, linewidth=1.8, marker="o", markersize=3, label=label)
    each.set_xlabel("time period")
    each.set_ylabel("obsolete pages, millions")
    each.set_ylim(bottom=0)
    each.legend(frameon=False, fontsize=9)
    return drawn
