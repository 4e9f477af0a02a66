"""Diffs as rows: nothing is lost or invented, only what differs is marked, and the work is bounded."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from webfountain.service.pages.word_diff import MAX_LINE, MAX_ROWS, DiffRow, WordBudget, Words, diff_rows

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=30)


def unified(before: list[str], after: list[str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, lineterm="", n=1))


def text(words: tuple[Words, ...] | None) -> str:
    return "".join(each.text for each in words or ())


@given(st.lists(LINE, max_size=12), st.lists(LINE, max_size=12))
def test_rows_hold_every_line_of_the_diff(before: list[str], after: list[str]) -> None:
    lines = unified(before, after).splitlines()[2:]
    rows = diff_rows("\n".join(unified(before, after).splitlines()), WordBudget())
    assert [text(row.before) for row in rows if row.before is not None] == [x[1:] for x in lines if x[:1] in ("-", " ")]
    assert [text(row.after) for row in rows if row.after is not None] == [x[1:] for x in lines if x[:1] in ("+", " ")]


@given(LINE, LINE)
def test_what_is_not_marked_is_the_same_on_both_sides(before: str, after: str) -> None:
    for row in diff_rows(unified([before], [after]), WordBudget()):
        left = "".join(each.text for each in row.before or () if not each.marked)
        right = "".join(each.text for each in row.after or () if not each.marked)
        assert left == right or row.kind in ("removed", "added")


def test_changed_words_are_marked_within_the_line() -> None:
    rows = diff_rows(unified(["the price is 10 euro"], ["the price is 12 euro"]), WordBudget())
    assert rows == [
        DiffRow(
            "changed",
            (Words("the price is ", False), Words("10", True), Words(" euro", False)),
            (Words("the price is ", False), Words("12", True), Words(" euro", False)),
        )
    ]


def test_without_a_budget_whole_lines_are_marked_and_long_ones_are_cut() -> None:
    rows = diff_rows(unified(["a " * 900_000], ["b " * 900_000]), WordBudget(most=10))
    assert len(rows) == 1
    assert all(len(text(side)) <= MAX_LINE for side in (rows[0].before, rows[0].after))
    assert rows[0].before is not None
    assert rows[0].before[0].marked
    many = diff_rows(unified([str(n) for n in range(9000)], ["x"] * 9000), WordBudget())
    assert len(many) == MAX_ROWS + 1
