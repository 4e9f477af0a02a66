"""A change counts when enough of the text is gone; the old text is loaded only when it decides."""

from __future__ import annotations

import pytest

from webfountain.core.change import verdict

WORDS = [f"word{n}" for n in range(400)]
TEXT = " ".join(WORDS)


def never() -> str | None:
    raise AssertionError("the old text was loaded although it cannot matter")


def edited(count: int) -> str:
    """TEXT with `count` words replaced, four apart or more: 4 of 397 shingles go with each, 4 come."""
    return " ".join(f"new{n}" if n % 5 == 2 and n < 5 * count else word for n, word in enumerate(WORDS))


def test_an_equal_digest_is_the_same_copy_whatever_the_text() -> None:
    assert verdict("a", "a", min_change=0.0, text="x", old_text=never).verdict == "same"
    assert verdict("a", "a", min_change=0.5, text="x", old_text=never).verdict == "same"


def test_without_a_threshold_every_byte_counts_and_no_text_is_loaded() -> None:
    assert verdict("a", "b", min_change=0.0, text=TEXT, old_text=never).verdict == "changed"


def test_a_markup_only_change_is_minor() -> None:
    assert verdict("a", "b", min_change=1e-9, text=TEXT, old_text=lambda: TEXT).verdict == "minor"


@pytest.mark.parametrize(("words", "min_change"), [(2, 0.05), (3, 0.05), (9, 0.2), (30, 0.5)])
def test_the_verdict_follows_the_resemblance_on_both_sides_of_the_threshold(words: int, min_change: float) -> None:
    resemblance = (397 - 4 * words) / (397 + 4 * words)
    expected = "changed" if resemblance < 1 - min_change else "minor"
    assert verdict("a", "b", min_change=min_change, text=edited(words), old_text=lambda: TEXT).verdict == expected


def test_a_lost_old_text_counts_as_changed() -> None:
    assert verdict("a", "b", min_change=0.9, text=TEXT, old_text=lambda: None).verdict == "changed"


def test_two_empty_texts_with_other_bytes_are_a_minor_change() -> None:
    assert verdict("a", "b", min_change=0.05, text="", old_text=lambda: " \n").verdict == "minor"


def test_the_resemblance_is_reported_where_it_was_computed() -> None:
    assert verdict("a", "b", min_change=0.0, text=TEXT, old_text=never).resemblance is None
    assert verdict("a", "b", min_change=0.1, text=TEXT, old_text=lambda: TEXT).resemblance == 1.0
    judged = verdict("a", "b", min_change=0.05, text=edited(30), old_text=lambda: TEXT)
    assert judged.resemblance == pytest.approx((397 - 120) / (397 + 120), abs=0.1)
