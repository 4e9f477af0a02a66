"""Edwards 2001's Figures 3 to 6 are drawn from plans that were solved for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webfountain.errors import InputError
from webfountain.lab.plan_figures import draw_plans
from webfountain.lab.solving import packaged_instance, read_table

if TYPE_CHECKING:
    from pathlib import Path


def test_the_four_figures_are_drawn_from_eight_plans(tmp_path: Path) -> None:
    """Of 40 buckets, which takes four seconds; the shapes are the business of the optimiser's tests."""
    table = {**read_table(packaged_instance("emt1")), "buckets": 40}
    reported: list[str] = []
    paths = draw_plans(table, tmp_path, progress=reported.append)
    assert [path.name.split("-")[2] for path in paths] == ["3", "3", "4", "4", "5", "5", "6", "6"]
    assert all(path.stat().st_size > 5000 for path in paths)
    assert len(set(reported)) == 8


def test_a_table_without_the_strategies_is_refused(tmp_path: Path) -> None:
    table = {**read_table(packaged_instance("emt1")), "strategies": {}}
    with pytest.raises(InputError):
        draw_plans(table, tmp_path)
