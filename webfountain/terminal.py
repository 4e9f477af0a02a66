"""Texts of strangers on a terminal: what would move its cursor or turn its lines around is shown as U+FFFD."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["shown", "shown_lines"]

_CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
"""C0 but for tab and line feed, DEL, C1, marks and overrides of direction, separators, annotations."""
_IN_LINES: Final = re.compile(f"[{_CONTROLS}]")
_IN_A_LINE: Final = re.compile(f"[\\t\\n{_CONTROLS}]")


def shown(text: str) -> str:
    """A text as one line that only prints."""
    return _IN_A_LINE.sub("\ufffd", text)


def shown_lines(text: str) -> str:
    """A text of several lines; line feeds and tabs stay."""
    return _IN_LINES.sub("\ufffd", text)
