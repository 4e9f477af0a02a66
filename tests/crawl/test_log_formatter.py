"""The log as JSON is one object a line, whatever a stranger's text holds."""

from __future__ import annotations

import ast
import json
import logging
import sys
from pathlib import Path

import pytest

import webfountain
from webfountain.crawl.log_formatter import EVENT, JsonFormatter
from webfountain.metrics import STATS


def record(message: str, *arguments: object, error: BaseException | None = None) -> logging.LogRecord:
    raised = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("webfountain.crawl", logging.WARNING, "file.py", 1, message, arguments, raised)


@pytest.mark.parametrize("text", ["plain", 'a "quote"', "two\nlines", "\udcff no text", "\x1b[31m", "\u202e turned"])
def test_a_record_is_one_line_of_json(text: str) -> None:
    line = JsonFormatter().format(record("The page %s", text))
    assert "\n" not in line
    found = json.loads(line)
    assert found["level"] == "warning"
    assert found["logger"] == "webfountain.crawl"
    assert found["message"].startswith("The page ")
    assert found["time"].endswith("+00:00")


def test_a_traceback_is_a_field() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        error = sys.exc_info()[1]
    found = json.loads(JsonFormatter().format(record("It broke", error=error)))
    assert "ValueError: wrong" in found["error"]


def test_a_line_names_its_event_as_the_counts_do() -> None:
    plain, counted = record("The store is away"), record("An item failed")
    plain.name, counted.event = "webfountain.store.shared.outage", "ant/broken"
    events = [json.loads(JsonFormatter().format(each))["event"] for each in (plain, counted)]
    assert events == ["store/outage", "ant/broken"]


def test_each_event_that_the_package_names_is_counted() -> None:
    named = [
        ast.literal_eval(value) if isinstance(value, ast.Constant) else ast.unparse(value)
        for path in Path(webfountain.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.keyword) and node.arg == "extra" and isinstance(node.value, ast.Dict)
        for key, value in zip(node.value.keys, node.value.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == EVENT
    ]
    assert len(named) > 5
    assert [name for name in named if name not in STATS and "judge/" not in name] == []
