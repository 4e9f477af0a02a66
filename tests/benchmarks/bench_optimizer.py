"""Compare the optimiser with IPOPT on EMT-1 (255 x 14): ``python tests/benchmarks/bench_optimizer.py``.

IPOPT comes from the casadi wheel (extra ``benchmark``), with the same fractions formulation, exact Hessian, default
options, and a start from the uniform plan. Both take turns on the same machine. Most of our cost is SLSQP's work on
some 80 fractions, and most of IPOPT's cost is factorising the KKT system. ``--strategies 2,3`` selects strategies,
``--no-ipopt`` leaves IPOPT out, and ``--ipopt-seconds`` limits each of its runs.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from webfountain.core.model import Instance, simulate, simulate_plan
from webfountain.core.optimizer import solve
from webfountain.core.working_set import repaired, uniform_plan
from webfountain.lab.bucket_instances import build_instance
from webfountain.lab.solving import packaged_instance, read_table

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

GOALS = {"1": 4.0, "2": 30.0, "3": 18.0}
TURNS = 3  # of ours, around IPOPT's run


def main() -> None:
    """Print one line for each strategy and size."""
    options = _options()
    table = read_table(packaged_instance("emt1"))
    best_known = table["best_known"]
    print(f"{'instance':>14} {'objective':>11} {'vs best':>8} {'gap':>7} {'wall s':>7} {'cpu s':>6}"
          f" {'IPOPT obj':>10} {'wall s':>7} {'time ratio':>10} {'goal':>5}")  # fmt: skip
    for strategy in options.strategies.split(","):
        assert isinstance(best_known, dict)
        _compare(table, strategy, best_known[f"strategy_{strategy}"], options)
    for periods, buckets in ((28, 255), (14, 1000)):
        for strategy in options.strategies.split(","):
            _alone(table, strategy, periods, buckets)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--strategies", default="1,2,3")
    parser.add_argument("--no-ipopt", action="store_true")
    parser.add_argument("--ipopt-seconds", type=float, default=90.0)
    return parser.parse_args()


def _compare(table: dict[str, object], strategy: str, best: float, options: argparse.Namespace) -> None:
    k = build_instance(table, strategy=strategy)
    ours = [_timed(k) for _ in range(TURNS)]
    theirs = None if options.no_ipopt else _ipopt(k, options.ipopt_seconds)
    ours += [_timed(k) for _ in range(TURNS)]
    objective, gap, wall, cpu = min(ours, key=lambda each: each[2])
    assert objective < 1.01 * best, "the work was not done"
    line = f"{'S' + strategy + ' 255x14':>14} {objective:11.4f} {100 * (objective / best - 1):+7.3f}% {gap:7.4f}"
    line += f" {wall:7.2f} {cpu:6.2f}"
    if theirs is not None:
        wall = float(np.median([each[2] for each in ours]))
        line += f" {theirs[0]:10.4f} {theirs[1]:7.2f} {theirs[1] / wall:10.1f} {GOALS[strategy]:5.0f}"
    print(line, flush=True)


def _alone(table: dict[str, object], strategy: str, periods: int, buckets: int) -> None:
    objective, gap, wall, cpu = _timed(build_instance(table, strategy=strategy, periods=periods, buckets=buckets))
    name = f"S{strategy} {buckets}x{periods}"
    print(f"{name:>14} {objective:11.4f} {'':>8} {gap:7.4f} {wall:7.2f} {cpu:6.2f}", flush=True)


def _timed(k: Instance) -> tuple[float, float, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = solve(k)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    path = simulate_plan(k, found.x, found.z)
    assert (path.used - k.C).max() <= 1e-9
    return path.objective, found.gap, wall, cpu


def _ipopt(k: Instance, seconds: float) -> tuple[float, float]:
    """Return the objective of IPOPT's repaired plan, and the wall time without building derivatives."""
    import casadi

    problem, start = _problem(casadi, k)
    quiet: dict[str, Any] = {
        "print_time": False,
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "ipopt.max_wall_time": seconds,
    }
    solver = casadi.nlpsol("ipopt", "ipopt", problem["nlp"], quiet)
    begin = time.perf_counter()
    found = solver(x0=start, lbx=problem["low"], ubx=problem["high"], lbg=problem["below"], ubg=problem["above"])
    wall = time.perf_counter() - begin
    u = np.array(found["x"]).ravel()[: k.T * (k.B + 1)].reshape(k.T, k.B + 1).clip(0.0, 1.0)
    f, g = repaired(k, u[:, :-1], u[:, -1])
    return simulate(k, f, g).objective, wall


def _problem(ca: Any, k: Instance) -> tuple[dict[str, Any], Array]:
    """Return the sparse form for IPOPT: fractions and states as variables, equations (2)-(4) as rows.

    b is b0 plus p times the sum of z, so one variable per period represents the growth.
    """
    u, y = ca.MX.sym("u", k.B + 1, k.T), ca.MX.sym("y", k.B, k.T)
    grown, n = ca.MX.sym("grown", k.T), ca.MX.sym("n", k.T)
    rows, objective = [], 0
    y_old, n_old, grown_old = ca.DM(k.y0), ca.DM(k.n0), ca.DM(0.0)
    for t in range(k.T):
        f, b = u[: k.B, t], ca.DM(k.b0) + ca.DM(k.p) * grown_old
        x, z, a = f * b, u[k.B, t] * n_old, ca.DM(k.a[t])
        rows += [y[:, t] - (1 - f) * (y_old + a * (b - y_old)), grown[t] - grown_old - z]
        rows.append(n[t] - n_old - ca.dot(ca.DM(k.o[t]), x) - (k.w[t] - 1) * z - k.nconst[t])
        rows.append(ca.dot(ca.DM(k.c[t]), x) + k.d[t] * z - k.C[t])
        objective += ca.dot(ca.DM(k.oldwt[t]), y[:, t]) + k.newwt[t] * n[t]
        y_old, n_old, grown_old = y[:, t], n[t], grown[t]
    below = np.tile(np.append(np.zeros(k.B + 2), -np.inf), k.T)
    f0, g0 = uniform_plan(k)
    path = simulate(k, f0, g0)
    start = np.concatenate([np.column_stack([f0, g0]).ravel(), path.y[1:].ravel(), np.cumsum(path.z), path.n[1:]])
    fractions = k.T * (k.B + 1)
    high = np.append(np.ones(fractions), np.full(start.size - fractions, np.inf))
    v = ca.vertcat(ca.vec(u), ca.vec(y), grown, n)
    nlp = {"x": v, "f": objective, "g": ca.vertcat(*rows)}
    return {
        "nlp": nlp,
        "low": np.zeros(start.size),
        "high": high,
        "below": below,
        "above": np.zeros(below.size),
    }, start


if __name__ == "__main__":
    main()
