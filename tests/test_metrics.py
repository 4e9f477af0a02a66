"""The list of what is counted, and that nothing else is."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

import webfountain
from webfountain.metrics import HISTOGRAMS, STATS, Metrics, observed
from webfountain.policy.url_rules import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

from pathlib import Path

PACKAGE = Path(webfountain.__file__).parent


def counted_names() -> Iterator[tuple[str, str]]:
    """(place, name) of each text given to an `inc` in the package; an f-string's blanks stand as ``*``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "inc":
                name = _text(node.args[0])
                if name is not None:
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno}", name


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    return None


def test_each_name_that_the_package_counts_is_listed() -> None:
    unlisted = [
        (place, name)
        for place, name in counted_names()
        if not any(re.fullmatch(name.replace("*", ".+"), listed) for listed in STATS)
    ]
    assert unlisted == []


def test_names_are_a_room_and_an_event_with_unit_and_sentence() -> None:
    for name, stat in STATS.items():
        assert re.fullmatch(r"[a-z]+/[a-z_]+(/\*)?", name)
        assert stat.unit
        assert stat.sentence.endswith(".")


def test_each_reason_of_the_judge_is_listed() -> None:
    assert {f"judge/{reason}" for reason in REASONS} <= set(STATS)


def test_counts_add_up() -> None:
    metrics = Metrics()
    metrics.inc("duplicates/new")
    metrics.inc("duplicates/new", 4)
    assert metrics.get("duplicates/new") == 5
    assert metrics.get("duplicates/by_store") == 0
    assert metrics.snapshot() == {"duplicates/new": 5}


def test_an_unlisted_name_cannot_be_counted_or_asked_for() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError, match="is not listed"):
        metrics.inc("duplicates/nwe")
    with pytest.raises(KeyError, match="is not listed"):
        metrics.get("nonsense")


def test_a_family_is_counted_by_its_last_word() -> None:
    metrics = Metrics()
    metrics.inc("fetch/status/404")
    metrics.inc("fetch/status/200", 2)
    metrics.inc("fetch/started", 3)
    assert metrics.family("fetch/status") == {"404": 1, "200": 2}


def test_a_value_is_counted_in_its_bucket_and_in_the_sum() -> None:
    metrics = Metrics()
    for value in (0.0, 0.05, 0.051, 29.0, 31.0):
        metrics.add(observed("fetch/duration", value))
    assert metrics.family("fetch/duration") == {"0.05": 2, "0.1": 1, "30": 1, "inf": 1}
    assert metrics.get("fetch/duration_sum") == pytest.approx(60.101)
    assert all({f"{name}/*", f"{name}_sum"} <= STATS.keys() for name in HISTOGRAMS)
