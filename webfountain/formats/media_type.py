"""Parse the Content-Type of a response: media type and charset.

A malformed header is read as far as possible. If the header is missing, the media type is "", which counts as HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ContentType", "content_type"]

_HTML: Final = frozenset({"text/html", "application/xhtml+xml", ""})
_XML: Final = frozenset({"application/xml", "text/xml"})


class ContentType(NamedTuple):
    """Media type of a body, in lower case and without parameters, and its charset as written in the header."""

    kind: str
    charset: str | None

    @property
    def is_html(self) -> bool:
        """True if a browser's HTML parser reads this type, including XHTML."""
        return self.kind in _HTML

    @property
    def is_xml(self) -> bool:
        """True if the type is XML but not XHTML, such as a feed."""
        return self.kind in _XML or (self.kind.endswith("+xml") and self.kind not in _HTML)


def content_type(headers: Sequence[tuple[str, str]]) -> ContentType:
    """Parse the first Content-Type among `headers`, which are pairs (name, value)."""
    value = next((value for name, value in headers if name.lower() == "content-type"), "")
    kind, _, parameters = value.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return ContentType(kind.strip().lower(), value.strip(" \t\"'") or None)
    return ContentType(kind.strip().lower(), None)
