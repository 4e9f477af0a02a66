"""Every figure is drawn, twice the same, and says what is wrong when it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.test_evolution import poisson_pages, span
from webfountain.errors import InputError
from webfountain.lab.evolution import Evolution, evolution
from webfountain.lab.evolution_figures import draw_evolution
from webfountain.lab.observations import Observation

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def found() -> Evolution:
    pages = poisson_pages(10.0, pages=5, days=200, seed=1)
    return evolution(
        Observation([*pages, span((3,), site="b.com"), span(site="b.com", last=20, at_end=False)], 200, 0.0)
    )


def test_the_four_figures_are_drawn_as_png_and_svg(tmp_path: Path, found: Evolution) -> None:
    paths = draw_evolution(found, tmp_path / "figures")
    assert [path.name.split("-")[2] for path in paths] == ["2", "2", "4", "4", "5", "5", "6", "6"]
    assert all(path.read_bytes().startswith(PNG) for path in paths[::2])
    assert all(b"<svg" in path.read_bytes() for path in paths[1::2])


def test_a_single_group_and_pages_that_never_change_can_be_drawn(tmp_path: Path) -> None:
    assert draw_evolution(evolution(Observation([span()], 100, 0.0)), tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, found: Evolution) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--plots .*file"):
        draw_evolution(found, tmp_path / "file")
