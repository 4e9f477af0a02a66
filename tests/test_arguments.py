"""Arguments that no command has a use for: one line and status 2, whatever stands in them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import collection_of
from webfountain import cli
from webfountain.commands import options, printing
from webfountain.errors import InputError
from webfountain.policy.collection_file import CollectionInForce
from webfountain.store.contract import COLLECTION
from webfountain.store.opening import open_store
from webfountain.terminal_text import escaped

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def url(tmp_path: Path) -> str:
    store = open_store(f"rocksdb://{tmp_path}", collection="test", period_s=86_400.0)
    store.board.put_value(COLLECTION, CollectionInForce.encode(collection_of(["http://a.example/"])))
    store.close()
    return f"rocksdb://{tmp_path}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "http://a.example/\ud800"],
        ["explain", "http://a.example/", "--from", "http://a.example/\udcff"],
        ["pages", "--site", "http://a.exampl\udcff"],
        ["changes", "--site", "http://a.exampl\udcff"],
        ["cat", "http://a.example/\udcff"],
        ["now", "http://a.example/\udcff"],
        ["forget", "http://a.example/\udcff"],
        ["forget", "--site", "http://a.exampl\udcff"],
    ],
)
def test_bytes_that_are_no_text_are_one_line(url: str, capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert cli.main([arguments[0], "--store", url, *arguments[1:]]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1_000", "1e9", "0x10", "\uff11", "", " 1", "\udcff"])
def test_what_python_takes_for_a_number_is_not_yet_a_time(text: str) -> None:
    with pytest.raises(InputError, match="is not a time"):
        options.time_of(text)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("-5", -5.0), ("1.5", 1.5), ("1970-01-01T00:01", 60.0)])
def test_seconds_and_dates_are_times(text: str, seconds: float) -> None:
    assert options.time_of(text) == seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-1"])
def test_a_length_of_time_is_a_finite_number(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["crawl", "none.toml", "--max-seconds", text]) == 2
    assert "--max-seconds" in capfd.readouterr().err


@pytest.mark.parametrize("title", ["\x9b31m", "\u202egnp.exe", "\u2066x", "\x85", "\x7f", "é 日 😀", "\x1b[2J"])
def test_a_document_says_the_same_and_only_prints(title: str, capfd: pytest.CaptureFixture[str]) -> None:
    printing.print_json({"title": title})
    said = capfd.readouterr().out
    assert json.loads(said) == {"title": title}
    assert said.replace("\n", "").isprintable()
    assert escaped(said) == said


def test_lines_for_a_terminal_are_escaped_and_those_for_a_pipe_are_as_they_were(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    printing.print_json_lines([{"title": "\u202ex"}])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    printing.print_json_lines([{"title": "\u202ex"}])
    pipe, terminal = capfdbinary.readouterr().out.splitlines()
    assert "\u202e" in pipe.decode()
    assert "\u202e" not in terminal.decode()
    assert json.loads(pipe) == json.loads(terminal)
