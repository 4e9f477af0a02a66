"""A project's own extractors: named in the policy file, run in a child process, harmless when they fail."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import collection_of
from webfountain.errors import PolicyError
from webfountain.formats.document import DocumentReader
from webfountain.formats.extractors import extractor_named
from webfountain.formats.links import LinkExtractor, LinkSource
from webfountain.formats.media_type import ContentType
from webfountain.policy.counting import counting_rules
from webfountain.sandbox.reader import FencedReader

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.formats.page_units import ReadingRules

OWN = ContentType("application/x-own", None)
SOURCE = LinkSource("http://one.example/dir/a")


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReadingRules:
    """Rules by which a module of the project reads a type."""
    (tmp_path / "own_extractor.py").write_text(
        textwrap.dedent("""
        import sys

        from webfountain.formats.extractors import ExtractedText

        def extract(body, kind):
            if body == b"bad":
                raise ValueError
            if body == b"chatty":
                print("a warning of a library" * 1000, sys.stdin.read(), flush=True)
            if body == b"wrong":
                return ExtractedText(5, "T", [6])
            if body == b"nothing":
                return None
            return ExtractedText("T", body.decode().upper(), ["b", "mailto:x", "b"])
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    collection = collection_of(
        ["http://one.example/"],
        rest='[content.extractors]\n"application/x-own" = "own_extractor:extract"\n[changes]\ndiff = true',
    )
    return counting_rules(collection, "default").reading


def test_a_type_is_read_by_the_extractor_that_the_policy_file_names(rules: ReadingRules) -> None:
    found = DocumentReader(LinkExtractor()).read(b"x\ny", OWN, SOURCE, rules)
    assert (found.title, found.text, found.links) == ("T", "X\nY", ["http://one.example/dir/b"])
    assert [unit.line for unit in found.units or ()] == ["X", "Y"]


def test_it_runs_in_a_child_process_and_what_it_raises_costs_its_page_only(rules: ReadingRules) -> None:
    reader = FencedReader(LinkExtractor())
    try:
        assert reader.read_at_once(b"x", OWN, SOURCE, rules) is None
        assert reader.read(b"bad", OWN, SOURCE, rules).error == "parse-crash"
        assert reader.read(b"x", OWN, SOURCE, rules).text == "X"
    finally:
        reader.close()


def test_one_that_prints_reads_its_input_or_gives_other_types_harms_nothing_else(rules: ReadingRules) -> None:
    reader = FencedReader(LinkExtractor())
    try:
        assert reader.read(b"chatty", OWN, SOURCE, rules).text == "CHATTY"
        assert reader.read(b"wrong", OWN, SOURCE, rules).error == "parse-crash"
        assert reader.read(b"nothing", OWN, SOURCE, rules).error == "parse-crash"
        assert reader.read(b"x", OWN, SOURCE, rules).text == "X"
    finally:
        reader.close()


def test_an_extractor_that_does_not_exist_is_an_error_with_its_name() -> None:
    with pytest.raises(ImportError, match="textwrap has no function nothing"):
        extractor_named("textwrap:nothing")


def test_a_name_that_is_no_function_is_an_error_of_the_policy_file() -> None:
    with pytest.raises(PolicyError, match=r"content\.extractors"):
        collection_of(["http://one.example/"], rest='[content.extractors]\n"application/pdf" = "no function"')


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("select = ['div[']", r"change\.select\[0\]: 'div\[' is not allowed \(allowed: a CSS selector"),
        ("ignore_text = ['(']", r"change\.ignore_text\[0\]"),
        ("ignore_kinds = ['colours']", r"change\.ignore_kinds\[0\]: 'colours'"),
        ("learn = 1", r"change\.learn: 1"),
    ],
)
def test_a_wrong_rule_of_what_counts_is_one_line_with_file_key_and_value(line: str, place: str) -> None:
    with pytest.raises(PolicyError, match=rf"^test\.toml: {place}"):
        collection_of(["http://one.example/"], rest=f"[change]\n{line}")
    with pytest.raises(PolicyError, match=rf"^test\.toml: policies\.default\.{place}"):
        collection_of(["http://one.example/"], rest=f"[policies.default.change]\n{line}")
