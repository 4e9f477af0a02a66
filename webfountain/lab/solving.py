"""The optimiser for instance files, as `plan solve` uses it."""

from __future__ import annotations

import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from webfountain.errors import InputError
from webfountain.lab.bucket_instances import build_instance, strategy_names
from webfountain.policy.errors import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.core.model import Instance
    from webfountain.core.optimizer import Quality, Solution, Solver

__all__ = ["QUALITIES", "SOLVERS", "Version", "packaged_instance", "plan_table", "read_table", "solve_instance_file"]

Version = Literal["v1", "v2", "v3"]
SOLVERS = ("auto", "slsqp", "calendars")
QUALITIES = ("normal", "high")


@dataclass(frozen=True, slots=True)
class _TimedSolution:
    instance: Instance
    solution: Solution
    seconds: float


def packaged_instance(name: str) -> Path:
    """Return the path of a packaged instance file, "emt1" or "emt2". Raise InputError for any other name."""
    folder = Path(__file__).parent / "instances"
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.toml")))
        raise InputError(f"instance: {name!r} is not one of {known}")
    return path


def read_table(path: str | Path) -> dict[str, object]:
    """Return the table of an instance file. Raises InputError when the file cannot be read or is not TOML."""
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {reason_of(error)}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error


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
    """Solve an instance file and return the JSON document of `plan solve` (DESIGN 7).

    ``strategy`` is a name in the file, by default the first. ``out`` is the path of an .npz file for the plan: x (T, B)
    and z (T,) in the file's pages. ``seconds`` is the duration of the solver's work, without imports.

    Raises InputError for an invalid value; the message names the file, the key and the value.
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
    """Return the document of `plan solve` as text."""
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
    count = min(10, len(crawls))
    return [crawls[len(crawls) * k // count : len(crawls) * (k + 1) // count] for k in range(count)]
