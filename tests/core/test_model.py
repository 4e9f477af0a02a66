"""The recursion is the paper's, and its derivatives are those of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.core.drawn_instances import EMT1, drawn, emt1
from webfountain.core.model import (
    Instance,
    capacity_jacobian,
    fractions,
    gradient,
    make_instance,
    simulate,
    simulate_plan,
    weights_of,
)

if TYPE_CHECKING:
    from webfountain.core.arrays import Array


def random_fractions(instance: Instance, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.random((instance.T, instance.B)), rng.random(instance.T)


def varied(seed: int = 1, *, T: int = 5, B: int = 4) -> Instance:
    """An instance in which every constant differs, so that no term of a derivative can be missed."""
    r = np.random.default_rng(seed).random
    b0 = 1 + r(B)
    return make_instance(
        a=r((T, B)), C=r(T), b0=b0, y0=b0 * r(B), n0=0.7, c=r((T, B)), d=r(T), o=0.3 * r((T, B)),
        w=r(T), nconst=r(T), p=r(B), oldwt=r((T, B)), newwt=r(T),
    )  # fmt: skip


def test_the_fingerprints_of_emt1_are_exact_to_nine_digits() -> None:
    k = emt1()
    wanted = EMT1["fingerprints"]
    assert (k.a[0] * k.b0).sum() == pytest.approx(wanted["sum_a_b0"], abs=5e-10)
    idle = simulate(k, np.zeros((14, 255)), np.zeros(14))
    assert idle.objective == pytest.approx(wanted["zero_plan"]["objective"], abs=5e-7)
    assert idle.y[-1].sum() == pytest.approx(wanted["zero_plan"]["obsolete_end"], abs=5e-7)
    assert idle.n[-1] == pytest.approx(wanted["zero_plan"]["new_end"], abs=5e-7)
    plan = wanted["constant_plan"]
    path = simulate(k, np.full((14, 255), plan["x_over_b"]), np.full(14, plan["z_over_n"]))
    assert path.objective == pytest.approx(plan["objective"], abs=5e-7)
    assert path.y[-1].sum() == pytest.approx(plan["obsolete_end"], abs=5e-7)
    assert path.n[-1] == pytest.approx(plan["new_end"], abs=5e-7)
    assert (path.used - k.C).max() == pytest.approx(plan["max_capacity_excess"], abs=5e-7)


def test_the_recursion_is_the_papers_equations_written_as_loops() -> None:
    k = varied()
    f, g = random_fractions(k)
    path = simulate(k, f, g)
    b, y, n, J = k.b0.copy(), k.y0.copy(), k.n0, 0.0
    for t in range(k.T):
        z, arrived, used = g[t] * n, k.nconst[t], 0.0
        for i in range(k.B):
            x = f[t, i] * b[i]
            used += k.c[t, i] * x
            arrived += k.o[t, i] * x
            y[i] = (1 - x / b[i]) * ((1 - k.a[t, i]) * y[i] + k.a[t, i] * b[i])
            b[i] += k.p[i] * z
            J += k.oldwt[t, i] * y[i]
        n += arrived + (k.w[t] - 1) * z
        J += k.newwt[t] * n
        assert path.used[t] == pytest.approx(used + k.d[t] * z, rel=1e-12)
    assert path.objective == pytest.approx(J, rel=1e-12)
    assert path.n[-1] == pytest.approx(n, rel=1e-12)
    assert path.y[-1] == pytest.approx(y, rel=1e-12)
    assert path.b[-1] == pytest.approx(b, rel=1e-12)


def test_crawled_and_uncrawled_pages_are_drawn_alike_from_obsolete_and_fresh_ones() -> None:
    """Figure 2 of the paper: of 100 pages 20 are obsolete, half of the rest changes, 30 are crawled."""
    k = make_instance(a=0.5, C=30.0, b0=[100.0], y0=[20.0], periods=1)
    assert simulate_plan(k, np.array([[30.0]]), np.zeros(1)).y[-1, 0] == pytest.approx(0.7 * (20 + 40))


def test_the_adjoint_agrees_with_central_differences() -> None:
    k = varied()
    f, g = random_fractions(k)
    prices = np.random.default_rng(2).random(k.T)

    def lagrangian(v: Array) -> float:
        path = simulate(k, v[:, :-1], v[:, -1])
        return path.objective + float(prices @ path.used)

    u = np.column_stack([f, g])
    slope = np.column_stack(gradient(k, f, g, simulate(k, f, g), prices=prices))
    assert np.abs(slope - differences(lagrangian, u)).max() < 1e-6


def test_the_capacity_jacobian_agrees_with_central_differences() -> None:
    k = varied()
    f, g = random_fractions(k)
    path = simulate(k, f, g)
    K, M = capacity_jacobian(k, f, g, path)
    same = np.eye(k.T)
    by_f = path.b[:-1] * (k.c * same[:, :, None] + k.o * K[:, :, None])
    by_g = path.n[:-1] * (k.d * same + (k.w - 1) * K + M)
    u = np.column_stack([f, g])
    for s in range(k.T):
        wanted = differences(lambda v, s=s: float(simulate(k, v[:, :-1], v[:, -1]).used[s]), u)
        assert np.abs(np.column_stack([by_f[s], by_g[s]]) - wanted).max() < 1e-6


def differences(function: object, u: Array, *, step: float = 1e-5) -> Array:
    assert callable(function)
    found = np.zeros_like(u)
    for at in np.ndindex(*u.shape):
        up, down = u.copy(), u.copy()
        up[at] += step
        down[at] -= step
        found[at] = (function(up) - function(down)) / (2 * step)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_in_pages_and_its_fractions_are_the_same_history(seed: int) -> None:
    k = drawn(seed)
    f, g = random_fractions(k, seed)
    path = simulate(k, f, g)
    again = simulate_plan(k, path.x, path.z)
    assert again.objective == pytest.approx(path.objective, rel=1e-9)
    assert again.x == pytest.approx(path.x, rel=1e-9)
    assert np.isfinite(fractions(k, path.x, path.z)[0]).all()


def test_more_pages_than_there_are_cannot_be_crawled() -> None:
    k = make_instance(a=0.1, C=9.0, b0=[2.0, 0.0], n0=1.0, periods=2)
    path = simulate_plan(k, np.full((2, 2), 5.0), np.full(2, 7.0))
    assert path.x[0].tolist() == [2.0, 0.0]
    assert path.z.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("letter", "wrong"),
    [("a", 1.5), ("c", -1.0), ("C", float("nan")), ("o", np.ones((3, 3))), ("y0", 9.0), ("n0", float("inf"))],
)
def test_a_constant_out_of_range_is_named(letter: str, wrong: object) -> None:
    constants = {"a": 0.1, "C": 1.0, "b0": [1.0, 2.0], "periods": 2, letter: wrong}
    with pytest.raises(ValueError, match=f"^{letter}: "):
        make_instance(**constants)  # type: ignore[arg-type]


def test_pages_obsolete_forever_stay_within_their_bucket() -> None:
    k = drawn(7)
    path = simulate(k, *random_fractions(k))
    assert (path.y >= 0).all()
    assert (path.y <= path.b * (1 + 1e-12)).all()


def test_the_strategies_weigh_the_periods_as_the_paper_says() -> None:
    assert weights_of(1, 3).tolist() == [1, 1, 1]
    assert weights_of(2, 3).tolist() == [0, 0, 1]
    low, _, last = weights_of(3, 3)
    assert 0 < low < 0.1 < last == 1
    with pytest.raises(ValueError, match=r"strategy 4 is not one of \(1, 2, 3\)"):
        weights_of(4, 3)
