"""Patterns of policies mean what they mean in Python's `re`, and are found in linear time."""

from __future__ import annotations

import pickle
import re
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import assume, example, given, reject, settings
from hypothesis import strategies as st

from webfountain.errors import PolicyError
from webfountain.policy.collection_file import parse_collection
from webfountain.policy.patterns import MAX_SEARCHES, any_of, any_of_lines, compile_pattern

# Not here, for Python is wrong there: letters with cases beyond U+FFFF in a class that ignores case, and (?a:\\W).
LETTERS = "aAbkKsSiI_- \n\t09.éÉß\u017f\u212a\u0131İµμς\u03c3Σ٣²\u00a0\u2028\u0301Жж漢\U0001d4b3→\x1c\x85"
NOT_IN_PATTERNS = "\ud800\U0010fffe\U0010ffff"  # what UTF-8 or a spelled text has not

ATOMS = st.one_of(
    st.sampled_from([re.escape(each) for each in LETTERS]),
    st.sampled_from(
        [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\b", r"\B", "^", "$", r"\A", r"\Z", ".", "[a-z]", "[^a-z]"]
    ),
    st.sampled_from(
        [r"[^\w-]", r"[\W_]", r"[^\s\d]", "[a-é]", "[k]", "[^s]", "[İ-ž]", "[^K]", r"[\d_]", "[^_]", "[^é]"]
    ),
)


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def repeated(part: str, how: str) -> str:
        return f"(?:{part}){how}"

    return st.one_of(
        st.lists(parts, min_size=1, max_size=4).map("".join),
        st.builds(
            repeated, parts, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "??", "{1,2}?"])
        ),
        st.lists(parts, min_size=2, max_size=3).map(lambda some: f"({'|'.join(some)})"),
        st.builds(lambda part, flag: f"(?{flag}:{part})", parts, st.sampled_from("ism")),
        parts.map(lambda part: f"(?P<name>{part})"),
    )


PATTERNS = st.builds(
    lambda flags, body: (f"(?{flags})" if flags else "") + body,
    st.sampled_from(["", "", "i", "m", "s", "a", "im", "ia", "is"]),
    st.recursive(ATOMS, _larger, max_leaves=6),
)
TEXTS = st.one_of(st.text(LETTERS + NOT_IN_PATTERNS, min_size=1, max_size=12), st.text(min_size=1, max_size=6))


def _compiled_by_re(pattern: str) -> re.Pattern[str] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(pattern)
        except re.error:
            return None


@given(PATTERNS, TEXTS)
@example(r"\w", "é")
@example(r"^\d$", "٣")
@example(r"a\sb", "a\u00a0b")
@example(r"caf\b", "café")
@example(r"café\b", "un café noir")
@example("end$", "the end\n")
@example("end$\n", "the end\n")
@example("end\n$", "the end\n\n")
@example("(?i)k", "\u212a")
@example("_", "é_")
@example(r"(?x) a \  b  # comment", "a b")
@settings(max_examples=300, deadline=None)
def test_a_pattern_is_found_where_python_finds_it_and_as_often(pattern: str, text: str) -> None:
    expected = _compiled_by_re(pattern)
    assume(expected is not None)
    assert expected is not None
    try:
        found = compile_pattern(pattern)
    except ValueError as error:
        if not re.search(r"both with and without|B alone", str(error)):
            raise
        reject()
    assert found.search(text) == (expected.search(text) is not None)
    if expected.match("") is None and not re.search(r"\\[bBAZ]|[$^]", pattern):
        count = sum(1 for _ in expected.finditer(text))
        assert found.occurs(text, count) or not count
        assert not found.occurs(text, count + 1)


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("/(?=x)", "a part of the pattern"),
        ("(?!x)y", "a part of the pattern"),
        ("(?<=x)y", "a part of the pattern"),
        ("(?<!x)y", "a part of the pattern"),
        (r"(a)\1", "write the alternatives out"),
        ("(?P<n>a)(?P=n)", "write the alternatives out"),
        ("(a)?(?(1)b|c)", "write the alternatives out"),
        ("a++", "write a+"),
        ("(?>a|b)", "write (?:...)"),
        ("a{1001}", "use * or +"),
        (r"(\w{200}){200}", "use * or +"),
        (r"[ab]{600}x[ab]{600}", "use * or +"),
        (r"\w{1,1000}", "too large"),
        ("(?m:a$)|b$", "write \\Z"),
        (r"(?a:\b)x\b", "write two patterns"),
        (r"\B", "add a character beside it"),
        ("(", "is not a Python regular expression"),
        ("*.pdf", "nothing to repeat at position 0 (* repeats what stands before it; .* matches any text)"),
        ("(" * 5000 + ")" * 5000, "cannot be searched, because it has too many"),
    ],
)
def test_what_cannot_be_found_in_linear_time_is_an_error_that_says_how_to_write_it(
    pattern: str, advice: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        compile_pattern(pattern)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("[policies.default]\ndeny = ['ok', '/(?=x)']", "policies.default.deny"),
        ("[policies.bad]\n[[switch]]\nwhen = {text = '/(?=x)'}\nto = 'bad'", "switch[0].when.text"),
        ("[[rule]]\nmatch = '/(?=x)'\ntrust = 0", "rule[0].match"),
    ],
)
def test_a_nonlinear_pattern_is_one_line_with_file_key_and_value(table: str, key: str) -> None:
    text = f"[collection]\nname = 'c'\nseeds = ['https://example.org/']\n{table}\n"
    with pytest.raises(PolicyError) as error:
        parse_collection(text, Path("c.toml"))
    message = str(error.value)
    assert message.startswith("c.toml: ")
    assert key in message
    assert "'/(?=x)' " in message
    assert "allowed" not in message
    assert "make its content a part of the pattern" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        (r"(?i)(buy|order)\s+.*\s+online", "buy  "),
        (r"(a|a)*b", "a"),
        (r"(\w+\s?)+$\b", "é "),
        (r"(x+x+)+y", "x"),
    ],
)
def test_a_hostile_text_of_a_megabyte_takes_no_longer_than_its_length_asks_for(pattern: str, unit: str) -> None:
    """Backtracking takes hours to years for these; seconds are for a machine that does much else."""
    text = unit * (1_000_000 // len(unit))
    found, before = compile_pattern(pattern), time.process_time()
    found.search(text)
    assert time.process_time() - before < 5


def test_any_of_some_patterns_is_found_where_one_of_them_is() -> None:
    patterns = [compile_pattern(each) for each in ("(?i)/LOGIN", r"\.pdf$", r"(?x) / a \b # a", "é")]
    search = any_of(patterns)
    assert search is not None
    for text in ("/login", "/x.pdf", "/x.pdf\n", "/a/b", "/ab", "é", "/LOGin", "/.pdfs", "/ a"):
        assert search(text) == any(pattern.search(text) for pattern in patterns)
    assert any_of([]) is None


@given(PATTERNS, st.lists(st.text("aAbkKsSiI_- 09./", min_size=1, max_size=8), min_size=1, max_size=4))
@example("a$", ["ba", "b"])
@example(r"a\Z", ["ba", "b"])
@example(r"\Ab", ["a", "b"])
@example(r"a\sb", ["a", "b"])
@settings(max_examples=300, deadline=None)
def test_urls_that_are_searched_together_are_found_as_each_alone(pattern: str, urls: list[str]) -> None:
    try:
        found = compile_pattern(pattern)
    except ValueError:
        reject()
    assert any_of_lines([found])("\n".join(urls)) == any(map(found.search, urls))


def test_patterns_too_large_to_be_one_are_searched_one_by_one() -> None:
    patterns = [compile_pattern(f"{letter}[0-9a-f]{{900}}") for letter in "ghijklmnopqrstuvwxyzGHIJKLMN"]
    search = any_of(patterns)
    assert search is not None
    assert search("j" + "0" * 900)
    assert not search("j" + "0" * 899)


def test_equal_texts_are_equal_patterns_also_in_another_process() -> None:
    pattern = compile_pattern(r"\bx")
    assert pickle.loads(pickle.dumps(pattern)) == pattern
    assert len({pattern, compile_pattern(r"\bx"), compile_pattern("x")}) == 2


@given(PATTERNS, st.lists(st.text("ab1 \n_.é", max_size=12), max_size=3))
def test_what_is_found_is_removed_as_by_python(pattern: str, lines: list[str]) -> None:
    python = _compiled_by_re(pattern)
    assume(python is not None and not re.search(r"\\[bBAZ]|[$^]", pattern))
    assert python is not None
    try:
        ours = compile_pattern(pattern)
    except ValueError:
        reject()
    assume(not any(match.end() == match.start() for line in lines for match in python.finditer(line)))
    assume(all(line.isascii() for line in lines))
    assert ours.without(lines) == [python.sub("", line) for line in lines]


def test_removing_from_a_long_text_takes_a_bounded_number_of_searches() -> None:
    digits = compile_pattern(r"\d")
    assert digits.without(["7" * 1_000_000]) == [""]
    [rest] = digits.without(["7 " * 1_000_000])
    assert rest.count("7") == 1_000_000 - MAX_SEARCHES
    lines = digits.without(["7"] * (MAX_SEARCHES + 9))
    assert lines.count("7") > 0
