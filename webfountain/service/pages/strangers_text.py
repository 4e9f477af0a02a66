"""Show untrusted texts safely: cut long texts, and make invisible characters visible.

Titles, URLs, headers and diffs are untrusted, because anybody can write a web page. The templates escape untrusted
texts. This module also keeps the texts readable: a direction override cannot reverse a line, and a zero-width character
cannot hide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_SHOWN", "cut", "plain", "shown", "web_url", "with_marks"]

MAX_SHOWN: Final = 300
"""Maximum number of characters shown of an untrusted text."""
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u2069\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Invisible characters, such as control characters, direction marks, zero-width characters and lone surrogates."""


def cut(text: str, most: int = MAX_SHOWN) -> str:
    """Return a text of at most `most` characters. A cut text ends with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(text: object, most: int = MAX_SHOWN) -> str:
    """Return an untrusted text as plain text, such as for an HTML attribute. A long text is cut, and each invisible
    character is replaced by its code, such as [U+200B]."""
    return _INVISIBLE.sub(_number, cut(str(text), most))


def shown(text: object, most: int = MAX_SHOWN) -> Markup:
    """Return an untrusted text as HTML. The text is cut and escaped, and each invisible character is replaced by a
    marked code."""
    return Markup("<bdi>{}</bdi>").format(_marked(cut(str(text), most)))


def with_marks(text: object, words: Sequence[str]) -> Markup:
    """Return an untrusted text as HTML, like `shown`, with some words marked. A word is marked if it begins with one of
    `words`."""
    pattern = "|".join(map(re.escape, words)) or r"(?!)"
    parts = re.split(rf"(\b(?:{pattern}))", cut(str(text)), flags=re.IGNORECASE)
    body = (Markup("<mark>{}</mark>").format(_marked(part)) if i % 2 else _marked(part) for i, part in enumerate(parts))
    return Markup("<bdi>{}</bdi>").format(Markup("").join(body))


def web_url(url: object) -> str | None:
    """Return an untrusted URL if a page may safely link to it (valid, http or https), else None."""
    text = str(url)
    if _INVISIBLE.search(text) or any(each.isspace() for each in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme.lower() in ("http", "https") and parts.hostname else None


def _marked(text: str) -> Markup:
    parts, end = list[Markup](), 0
    for found in _INVISIBLE.finditer(text):
        parts += [
            escape(text[end : found.start()]),
            Markup('<span class="hidden-char">{}</span>').format(_number(found)),
        ]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _number(found: re.Match[str]) -> str:
    return f"[U+{ord(found[0]):04X}]"
