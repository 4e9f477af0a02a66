"""Make untrusted texts safe on a terminal: characters that move the cursor or reverse lines become U+FFFD."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["escaped", "shown", "shown_lines"]

_CONTROLS: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
"""Characters that are replaced: C0 except tab and line feed, DEL, C1, direction marks and overrides, separators,
annotations.
"""
_IN_LINES: Final = re.compile(f"[{_CONTROLS}]")
_IN_A_LINE: Final = re.compile(f"[\\t\\n{_CONTROLS}]")
_IN_JSON: Final = re.compile(f"[{_CONTROLS}]")


def shown(text: str) -> str:
    """Return a text as one line without control characters."""
    return _IN_A_LINE.sub("\ufffd", text)


def escaped(json: str) -> str:
    """Escape all control characters of a JSON document, without changing its meaning."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def shown_lines(text: str) -> str:
    """Return a text of several lines without control characters; line feeds and tabs stay."""
    return _IN_LINES.sub("\ufffd", text)
