"""Figures 3 to 6 of Edwards 2001 for newly solved plans of an instance file, as PNG and SVG.

The paper does not print its constants, so only the shapes of the curves can be compared, not the numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webfountain.core.model import simulate_plan
from webfountain.lab.bucket_instances import build_instance
from webfountain.lab.figures import COLOURS, figure, save

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["draw_plans"]


class _Case(NamedTuple):
    """A plan of the paper, given by its strategy, version and number of periods."""

    strategy: str
    version: str = "v1"
    periods: int = 14


class _Plan(NamedTuple):
    crawls: list[float]
    """Mean number of crawls of a page in the cycle, per bucket."""
    obsolete: list[float]
    """Number of obsolete pages at the end of each period, in the file's unit (millions)."""


_STRATEGIES = (_Case("1"), _Case("2"), _Case("3"))
_VERSIONS = (_Case("1"), _Case("1", "v2"), _Case("3"), _Case("3", "v2"))
_LENGTHS = (_Case("1"), _Case("1", periods=28), _Case("1", "v3"), _Case("1", "v3", 28))


def draw_plans(
    table: dict[str, object], folder: Path, *, progress: Callable[[str], object] = lambda text: None
) -> list[Path]:
    """Solve the plans of Figures 3 to 6, draw them into `folder` and return the paths.

    Parameters
    ----------
    table : an instance file with strategies "1", "2" and "3" (`plans.read_table`)
    progress : receives a short description of each plan before it is solved

    Raises
    ------
    InputError
        when the table is incomplete, matplotlib is not installed, or the folder cannot be written.
    """
    # Check this first, before eight plans are solved in vain.
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
        # Curves to compare share a colour: the first is solid, the second dashed.
        colour, style = COLOURS[list(dict.fromkeys(keys)).index(key)], "--" if key in keys[:number] else "-"
        obsolete, label = plans[case].obsolete, _name(case, cases)
        periods = range(1, len(obsolete) + 1)
        each.plot(periods, obsolete, style, color=colour, linewidth=1.8, marker="o", markersize=3, label=label)
    each.set_xlabel("time period")
    each.set_ylabel("obsolete pages, millions")
    each.set_ylim(bottom=0)
    each.legend(frameon=False, fontsize=9)
    return drawn
