"""Tests of `make bench`: it runs every benchmark, whatever one of them returns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as runner

FOLDER = Path(runner.__file__).parent


def test_a_benchmark_that_needs_an_argument_does_not_run_by_default() -> None:
    """Else it would end `make bench` with a usage message."""
    needed = re.compile(r'add_argument\(\s*"\w+"(?![^)]*nargs="[*?]")')
    needing = {name for name in runner.benchmarks() if needed.search((FOLDER / f"bench_{name}.py").read_text("utf-8"))}
    assert needing == set(runner.APART)


def test_all_benchmarks_run_although_one_fails(capsys: pytest.CaptureFixture[str]) -> None:
    commands: list[list[str]] = []

    def run(command: list[str]) -> int:
        commands.append(command)
        return 2 if command[2].endswith("bench_crawl") else 0

    assert runner.main([], run=run) == 2
    assert [command[2].split("bench_")[1] for command in commands] == [
        name for name in runner.benchmarks() if name not in runner.APART
    ]
    assert all(len(command) == 3 for command in commands)
    ends = capsys.readouterr().out.split("== all benchmarks\n")[1]
    assert re.search(r"^crawl +0 s  exit status 2$", ends, re.MULTILINE)
    assert re.search(r"^fetch +0 s  passed$", ends, re.MULTILINE)
    assert re.search(r"^against +not run: ", ends, re.MULTILINE)


def test_the_options_of_the_acceptance_figures_are_of_benchmarks_that_exist() -> None:
    assert set(runner.FULL) <= set(runner.benchmarks())


def test_an_unknown_benchmark_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        runner.main(["speed"], run=lambda _: 0)
    assert "no such benchmark: speed" in capsys.readouterr().err
