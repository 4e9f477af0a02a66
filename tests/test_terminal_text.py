"""What strangers wrote prints, and does nothing else."""

from __future__ import annotations

import pytest

from webfountain.terminal_text import shown, shown_lines


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x07", "\x9b31m", "\x08", "\r", "\u202egnp.exe", "\u2066x\u2069", "\u200f", "\x7f", "\0"]
)
def test_what_moves_the_cursor_or_the_order_of_letters_is_a_replacement_sign(text: str) -> None:
    for found in (shown(f"a{text}b"), shown_lines(f"a{text}b")):
        assert found.startswith("a\ufffd")
        assert found.endswith("b")
        assert found.replace("\ufffd", "").isprintable()


def test_lines_stay_in_a_text_and_not_in_a_title() -> None:
    assert shown_lines("one\n\ttwo é 日 😀") == "one\n\ttwo é 日 😀"
    assert shown("one\n\ttwo é 日 😀") == "one\ufffd\ufffdtwo é 日 😀"
