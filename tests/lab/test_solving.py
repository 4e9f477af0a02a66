"""`plan solve`: the promised document, the plan on disk, and errors that name file, key and value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from webfountain.core.model import simulate_plan
from webfountain.errors import InputError
from webfountain.lab.bucket_instances import build_instance
from webfountain.lab.solving import packaged_instance, plan_table, read_table, solve_instance_file

if TYPE_CHECKING:
    from pathlib import Path

PROMISED = {
    "objective", "bound", "gap", "seconds", "capacity_excess", "obsolete_end", "pages_end", "new_end",
    "crawls_per_bucket",
}  # fmt: skip


def test_the_document_is_what_simulating_the_written_plan_gives(tmp_path: Path) -> None:
    out = tmp_path / "plan.npz"
    found = solve_instance_file(packaged_instance("emt1"), strategy="3", periods=7, buckets=20, out=out)
    assert set(found) >= PROMISED
    json.dumps(found, allow_nan=False)
    k = build_instance(read_table(packaged_instance("emt1")), strategy="3", periods=7, buckets=20)
    plan = np.load(out)
    assert (plan["x"].shape, plan["z"].shape) == ((7, 20), (7,))
    path = simulate_plan(k, plan["x"], plan["z"])
    assert found["objective"] == pytest.approx(path.objective, rel=1e-12)
    assert found["capacity_excess"] == max(0.0, (path.used - k.C).max()) <= 1e-9
    assert found["obsolete_end"] == pytest.approx(path.y[-1].sum())
    assert found["pages_end"] == pytest.approx(path.b[-1].sum())
    assert found["new_end"] == pytest.approx(path.n[-1])
    assert found["crawls_per_bucket"] == pytest.approx((path.x / path.b[:-1]).sum(axis=0))
    objective, bound = found["objective"], found["bound"]
    assert isinstance(objective, float)
    assert isinstance(bound, float)
    assert found["gap"] == pytest.approx((objective - bound) / objective)


def test_the_first_strategy_of_the_file_is_solved_unless_one_is_named() -> None:
    path = packaged_instance("emt1")
    one, named = (solve_instance_file(path, strategy=name, periods=3, buckets=5) for name in (None, "1"))
    assert one["objective"] == named["objective"]


def test_the_table_shows_each_figure_and_a_tenth_of_the_buckets_each() -> None:
    found = solve_instance_file(packaged_instance("emt1"), periods=3, buckets=30)
    lines = plan_table(found).splitlines()
    assert lines[0].split() == ["objective", f"{found['objective']:.6g}"]
    assert len(lines[-1].split()) == 10


def test_a_wrong_value_names_file_key_and_value(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(packaged_instance("emt1").read_text().replace("capacity = 47.0", "capacity = -47.0"))
    with pytest.raises(InputError, match=r"mine\.toml: costs\.capacity .*-47"):
        solve_instance_file(path)


@pytest.mark.parametrize(
    ("text", "named"),
    [("a = ", "Invalid value"), ("pages = 1", "pages must be a table"), ("", "pages must be a table")],
)
def test_a_file_of_another_form_is_refused_with_its_name(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "other.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"other\.toml: .*{named}"):
        solve_instance_file(path)


def test_a_missing_file_and_an_unwritable_plan_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.toml"):
        solve_instance_file(tmp_path / "absent.toml")
    with pytest.raises(InputError, match=r"no/plan\.npz"):
        solve_instance_file(packaged_instance("emt1"), periods=2, buckets=2, out=tmp_path / "no/plan.npz")


@pytest.mark.parametrize(("argument", "value"), [("solver", "minos"), ("quality", "best"), ("version", "v9")])
def test_an_unknown_choice_is_named(argument: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{argument}: '{value}'"):
        solve_instance_file(packaged_instance("emt1"), **{argument: value})  # type: ignore[arg-type]


def test_an_unknown_packaged_instance_is_named() -> None:
    with pytest.raises(InputError, match="'emt9' is not one of emt1, emt2"):
        packaged_instance("emt9")


def test_the_packages_copy_of_emt1_is_the_shared_one(shared_data: Path) -> None:
    shared, ours = read_table(shared_data / "optimizer" / "emt1.toml"), read_table(packaged_instance("emt1"))
    for table in (shared, ours):
        table.pop("best_known")
    assert shared == ours
