"""The encoding of a body, chosen by the same rules as in browsers.

The byte order mark decides the encoding, else the Content-Type, else the declaration in the body. The default encoding
is UTF-8. Labels are looked up in the WHATWG Encoding Standard, so a body cannot select a Python codec that is no
charset. Unknown labels are ignored, and decoding never fails.

Source: Encoding Standard, section 4.2 (labels); HTML Standard, section 13.2.3.2 (a declared UTF-16 means UTF-8).
"""

from __future__ import annotations

import codecs
import functools
import re
from typing import Final

from webencodings.labels import LABELS

__all__ = ["decode", "encoding_of", "python_codec", "xml_encoding_of"]

_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_PRESCAN_BYTES: Final = 4096
"""Number of bytes of a body that are searched for an encoding declaration."""
_META: Final = re.compile(rb"<meta\b[^<>]*?charset\s*=\s*[\"']?\s*([^\s\"'/<>;]+)", re.IGNORECASE)
_DECLARATION: Final = re.compile(rb"\A\s*<\?xml\s[^<>]{0,200}?encoding\s*=\s*[\"']\s*([^\"'<>\s]+)", re.IGNORECASE)
# Encodings for which browsers decode more than Python's codec.
_CODECS: Final = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "iso-8859-8-i": "iso-8859-8",
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-user-defined": "windows-1252",
}
# Browsers show nothing for these encodings, so that scripts cannot hide in them. The crawler runs no scripts, so it
# reads them.
_READ_ALL_THE_SAME: Final = {
    "csiso2022kr": "iso2022_kr",
    "hz-gb-2312": "hz",
    "iso-2022-cn": "gb18030",
    "iso-2022-cn-ext": "gb18030",
    "iso-2022-kr": "iso2022_kr",
}


@functools.lru_cache(maxsize=256)
def python_codec(label: str) -> str | None:
    """Return Python's name of the codec for a charset label, or None if the label is unknown."""
    word = label.strip("\t\n\f\r ").lower()
    if word in _READ_ALL_THE_SAME:
        return _READ_ALL_THE_SAME[word]
    name = LABELS.get(word)
    if name is None or name == "replacement":
        return None
    return codecs.lookup(_CODECS.get(name, name)).name


def encoding_of(body: bytes, charset: str | None) -> tuple[str, int]:
    """Return Python's name of a body's encoding, and the length of the byte order mark.

    Parameters
    ----------
    charset : from the Content-Type header, or None
    """
    return _named(body, charset) or (_declared(body, _DECLARATION) or _declared(body, _META) or "utf-8", 0)


def xml_encoding_of(body: bytes, charset: str | None) -> tuple[str, int]:
    """Return the same as `encoding_of`, but for an XML body other than XHTML. In XML, the encoding declaration counts
    but HTML meta elements do not. `body` may be incomplete."""
    if charset is None and body.startswith((b"<\0?\0", b"\0<\0?")):
        return (
            "utf-16-be" if body.startswith(b"\0") else "utf-16-le"
        ), 0  # XML 1.0, appendix F: UTF-16 without a byte order mark
    return _named(body, charset) or (_declared(body, _DECLARATION) or "utf-8", 0)


def decode(body: bytes, charset: str | None) -> str:
    """Return a body as str, without its byte order mark. Invalid bytes become U+FFFD."""
    name, mark = encoding_of(body, charset)
    return body[mark:].decode(name, "webfountain.browser")


def _named(body: bytes, charset: str | None) -> tuple[str, int] | None:
    for mark, name in _MARKS:
        if body.startswith(mark):
            return name, len(mark)
    named = python_codec(charset) if charset else None
    return None if named is None else (named, 0)


def _declared(body: bytes, declaration: re.Pattern[bytes]) -> str | None:
    found = declaration.search(body, 0, _PRESCAN_BYTES)
    name = None if found is None else python_codec(found[1].decode("latin-1"))
    # The declaration could be read as bytes, so the body is not UTF-16.
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _as_browsers(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of an invalid byte, as in browsers: U+FFFD or a control character."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start]
    return (chr(byte) if error.encoding == "charmap" and byte < 0xA0 else "\ufffd"), error.end


codecs.register_error("webfountain.browser", _as_browsers)
