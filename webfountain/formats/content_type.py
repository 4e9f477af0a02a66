"""What an answer's Content-Type says of its body: the media type, and the charset that a browser would believe first.

One reading for all: the examiner, the copies in the repository, the commands. A header that makes no sense is read as
far as it goes; no header is the type "", which counts as HTML because that is what servers forget it on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ContentType", "content_type"]

_HTML: Final = frozenset({"text/html", "application/xhtml+xml", ""})
_XML: Final = frozenset({"application/xml", "text/xml"})


class ContentType(NamedTuple):
    """Media type in lower case without parameters ("" when there is none), charset as written or None."""

    kind: str
    charset: str | None

    @property
    def is_html(self) -> bool:
        """Whether a browser's HTML parser reads it; it reads XHTML too."""
        return self.kind in _HTML

    @property
    def is_xml(self) -> bool:
        """Whether it is some other XML: a feed, a sitemap, a picture."""
        return self.kind in _XML or (self.kind.endswith("+xml") and self.kind not in _HTML)


def content_type(headers: Sequence[tuple[str, str]]) -> ContentType:
    """The type that the first Content-Type among `headers` (name, value) names."""
    value = next((value for name, value in headers if name.lower() == "content-type"), "")
    kind, _, parameters = value.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return ContentType(kind.strip().lower(), value.strip(" \t\"'") or None)
    return ContentType(kind.strip().lower(), None)
