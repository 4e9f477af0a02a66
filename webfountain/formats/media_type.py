"""Parse the Content-Type of a response: media type and charset.

A malformed header is read as far as possible. A missing header gives the type "", which counts as HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ContentType", "content_type"]

_HTML: Final = frozenset({"text/html", "application/xhtml+xml", ""})
_XML: Final = frozenset({"application/xml", "text/xml"})


class ContentType(NamedTuple):
    """Media type in lower case without parameters ("" if missing), and charset as written."""

    kind: str
    charset: str | None

    @property
    def is_html(self) -> bool:
        """True if a browser's HTML parser reads this type, including XHTML."""
        return self.kind in _HTML

    @property
    def is_xml(self) -> bool:
        """True for other XML, such as a feed."""
        return self.kind in _XML or (self.kind.endswith("+xml") and self.kind not in _HTML)


def content_type(headers: Sequence[tuple[str, str]]) -> ContentType:
    """Return the type in the first Content-Type among `headers` (name, value)."""
    value = next((value for name, value in headers if name.lower() == "content-type"), "")
    kind, _, parameters = value.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return ContentType(kind.strip().lower(), value.strip(" \t\"'") or None)
    return ContentType(kind.strip().lower(), None)
