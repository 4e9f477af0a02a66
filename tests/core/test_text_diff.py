"""Differences of two texts: always a correct edit, close to the shortest, and never slow."""

from __future__ import annotations

import difflib
import re
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core import text_diff
from webfountain.core.text_diff import DIFF_BYTES, MAX_LINES, WORK, TextEdit, blocks_of_diff, edits, unified

if TYPE_CHECKING:
    from collections.abc import Sequence

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", " x"]), max_size=40)


def applied(old: Sequence[str], diff: str) -> list[str]:
    """What `patch` makes of the old lines by a unified diff. Fails where the diff does not fit."""
    new: list[str] = []
    at = 0
    lines = diff.removesuffix("\n").split("\n") if diff else []
    for line in lines:
        head = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
        if head is not None:
            begin, many = int(head[1]), int(head[2] or 1)
            begin = begin - 1 if many else begin
            new += old[at:begin]
            at = begin
            new_begin = int(head[3]) - 1 if int(head[4] or 1) else int(head[3])
            assert len(new) == new_begin
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [line[1:]] if line[0] == " " else []
            at += 1
    return [*new, *old[at:]]


def edited(old: Sequence[str], new: Sequence[str], *, work: int = WORK) -> list[str]:
    found: list[str] = []
    at = 0
    for edit in edits(old, new, work=work):
        assert edit.old_from - at == edit.new_from - len(found), "between two edits the texts are equal"
        found += old[at : edit.old_from]
        found += new[edit.new_from : edit.new_to]
        at = edit.old_to
    return [*found, *old[at:]]


@given(LINES, LINES)
def test_a_diff_makes_the_new_text_of_the_old_one(old: list[str], new: list[str]) -> None:
    before, text = ("".join(line + "\n" for line in lines) for lines in (old, new))
    assert applied(old, unified(before, text)) == new


@given(LINES, LINES, st.integers(0, 60))
def test_edits_are_right_however_little_work_they_may_take(old: list[str], new: list[str], work: int) -> None:
    assert edited(old, new, work=work) == new


@given(st.lists(st.sampled_from("abc"), max_size=20), st.lists(st.sampled_from("abc"), max_size=20))
def test_what_unique_tokens_do_not_divide_has_the_shortest_edits(old: list[str], new: list[str]) -> None:
    longest = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, a in enumerate(old):
        for j, b in enumerate(new):
            longest[i + 1][j + 1] = longest[i][j] + 1 if a == b else max(longest[i][j + 1], longest[i + 1][j])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_diff, "DEPTH", 0)
        changed = sum(each.old_to - each.old_from + each.new_to - each.new_from for each in edits(old, new))
    assert changed == len(old) + len(new) - 2 * longest[-1][-1]


def test_a_diff_of_an_ordinary_page_is_that_of_difflib() -> None:
    old = [f"Line {n} of the page, with its own words." for n in range(300)] + [""] * 5
    new = [*old[:40], "A new one.", *old[40:100], *old[103:200], "Changed.", *old[201:]]
    expected = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    assert unified("\n".join(old), "\n".join(new)).splitlines() == expected


def test_a_diff_shows_removed_and_added_lines() -> None:
    assert unified("one\ntwo\nthree", "one\n2\nthree") == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert unified("same", "same") == ""


def test_words_are_compared_as_lines_are() -> None:
    old, new = ["the", "price", "is", "10", "euros", "today"], ["the", "price", "is", "12", "euros"]
    assert [(old[a:b], new[c:d]) for a, b, c, d in edits(old, new)] == [(["10"], ["12"]), (["today"], [])]


def test_a_diff_is_cut_at_the_end_of_a_line_and_long_texts_are_compared_at_their_beginning() -> None:
    diff = unified("", "\n".join(f"line {number} \N{LATIN SMALL LETTER U WITH DIAERESIS}" for number in range(9000)))
    assert DIFF_BYTES - 30 < len(diff.encode()) <= DIFF_BYTES
    assert diff.endswith("\n")
    assert unified("x" * 10**6, "y" * 10**6).count("\n") == 3
    beyond = "\n".join(map(str, range(5000)))
    assert unified(beyond, beyond + "\nnew") == ""


def hostile() -> dict[str, tuple[list[str], list[str]]]:
    """Pairs of texts that are slow to compare by one way or another."""
    many = MAX_LINES
    fibonacci = ["a", "b"]
    while len(fibonacci) < many:
        fibonacci = [*fibonacci, *fibonacci[: len(fibonacci) * 5 // 8]]
    return {
        "two lines in turn": (["a", "b"] * (many // 2), ["b", "a", "a"] * (many // 3)),
        "empty lines and few others": ([""] * many, ["", "", "x"] * (many // 3)),
        "a word without squares": (fibonacci[:many], fibonacci[1:many][::-1]),
        "all in the reverse order": ([str(n) for n in range(many)], [str(n) for n in range(many)][::-1]),
        "every line twice": ([str(n // 2) for n in range(many)], [str(n // 2) for n in range(many)][::-1]),
        "unique lines that cross": (
            [str(n * 7919 % many) for n in range(many)],
            [str(n * 104729 % many) for n in range(many)],
        ),
        "small alphabet": ([str(n * n % 31) for n in range(many)], [str(n * n * n % 29) for n in range(many)]),
        "gaps within gaps": (
            [str(n % (1 + n // 64)) for n in range(many)],
            [str(n % (1 + n // 65)) for n in range(many)],
        ),
    }


def test_no_text_takes_long_to_compare_and_each_diff_is_right() -> None:
    for name, (old, new) in hostile().items():
        began = time.process_time()
        found = edits(old, new)
        seconds = time.process_time() - began
        assert seconds < 0.25, name  # some 20 ms on a quiet machine; difflib takes minutes
        assert found, name
        assert edited(old, new) == new, name


def test_a_changed_price_is_a_diff_of_five_lines_and_its_words_are_marked() -> None:
    before = "\n".join([f"item {i}\t{i}.00 EUR" for i in range(20)])
    diff = unified(before, before.replace("7.00", "7.50", 1))
    assert diff.count("\n") == 5
    found = blocks_of_diff(diff)
    assert (found.removed, found.added) == (("item 7\t7.00 EUR",), ("item 7\t7.50 EUR",))
    assert found.words == ("item 7\t7.[-00-]{+50+} EUR",)


def test_blocks_that_were_only_added_or_removed_are_marked_as_a_whole() -> None:
    assert blocks_of_diff(unified("a\nb", "b\nc d")).words == ("[-a-]", "{+c d+}")
    assert blocks_of_diff("") == ((), (), ())


def test_all_hostile_lines_of_a_diff_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that changes 190 lines at each visit must not make its change log unreadable."""
    allowed: list[int] = []

    def counted(old: Sequence[str], new: Sequence[str], *, work: int) -> list[TextEdit]:
        allowed.append(work)
        return edits(old, new, work=work)

    monkeypatch.setattr(text_diff, "edits", counted)
    lines = ["-" + ".,;:!?" * 8] * 190 + ["+" + "?!:;,." * 8] * 190
    assert len(blocks_of_diff("\n".join(lines)).words) == 190
    assert sum(allowed) <= text_diff.DIFF_STEPS


def test_the_words_of_hostile_lines_take_bounded_time() -> None:
    diff = "-" + "a b " * 5000 + "\n+" + "b a " * 5000 + "\n"
    assert len(blocks_of_diff(diff).words) == 1
