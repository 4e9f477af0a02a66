"""What a body is, by what it says of itself: its type, its encoding, and the language of its text.

What an answer's Content-Type says of its body: the media type, and the charset that a browser would believe first.
One reading for all: the examiner, the copies in the repository, the commands. A header that makes no sense is read as
far as it goes; no header is the type "", which counts as HTML because that is what servers forget it on.

Which encoding a body is in, and its text: as browsers decide it, never an error. The order is a browser's: byte order
mark, Content-Type, what the body declares of itself, UTF-8. A label means what the WHATWG Encoding Standard says that
it means ("latin1" is windows-1252, "hex" is nothing), so that no codec of Python that is no charset is ever reached;
a label that means nothing is as good as none.

Source: Encoding Standard (labels: section 4.2; a declared UTF-16 is UTF-8: HTML Standard, section 13.2.3.2).

The language of a page: by its letters and its commonest words, and where these do not tell by what it declares.

Small on purpose: it decides whether a page is in one of the languages that a collection wants. A script that one
language has to itself, or nearly, tells it at once; others are told by stop words, of which any text is full. What a
page declares (``lang``) is believed only where its text is too short to tell: templates declare the language of their
author. No download, no model: 29 languages, and None for all others.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webencodings.labels import LABELS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LANGUAGES",
    "ContentType",
    "content_type",
    "decode",
    "encoding_of",
    "language_of",
    "python_codec",
    "xml_encoding_of",
]

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


_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_PRESCAN_BYTES: Final = 4096
"""Browsers look at 1024 and begin anew when they find a declaration later."""
_META: Final = re.compile(rb"<meta\b[^<>]*?charset\s*=\s*[\"']?\s*([^\s\"'/<>;]+)", re.IGNORECASE)
_DECLARATION: Final = re.compile(rb"\A\s*<\?xml\s[^<>]{0,200}?encoding\s*=\s*[\"']\s*([^\"'<>\s]+)", re.IGNORECASE)
# Where Python's codec of the standard's name knows less than browsers do.
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
# Browsers show nothing at all of these, to keep scripts from hiding in them; here is only text to read.
_READ_ALL_THE_SAME: Final = {
    "csiso2022kr": "iso2022_kr",
    "hz-gb-2312": "hz",
    "iso-2022-cn": "gb18030",
    "iso-2022-cn-ext": "gb18030",
    "iso-2022-kr": "iso2022_kr",
}


@functools.lru_cache(maxsize=256)
def python_codec(label: str) -> str | None:
    """Python's name of the text codec that a charset label means; None when it means none."""
    word = label.strip("\t\n\f\r ").lower()
    if word in _READ_ALL_THE_SAME:
        return _READ_ALL_THE_SAME[word]
    name = LABELS.get(word)
    if name is None or name == "replacement":
        return None
    return codecs.lookup(_CODECS.get(name, name)).name


def encoding_of(body: bytes, charset: str | None) -> tuple[str, int]:
    """Python's name of the encoding of a body, and how long its byte order mark is.

    Parameters
    ----------
    charset : from the Content-Type header, or None
    """
    return _named(body, charset) or (_declared(body, _DECLARATION) or _declared(body, _META) or "utf-8", 0)


def xml_encoding_of(body: bytes, charset: str | None) -> tuple[str, int]:
    """As `encoding_of`, for what is XML and no page: its meta elements are somebody's text. A beginning is enough."""
    if charset is None and body.startswith((b"<\0?\0", b"\0<\0?")):
        return ("utf-16-be" if body.startswith(b"\0") else "utf-16-le"), 0  # XML 1.0, appendix F: without a mark
    return _named(body, charset) or (_declared(body, _DECLARATION) or "utf-8", 0)


def decode(body: bytes, charset: str | None) -> str:
    """A body as str without its byte order mark; bytes that do not fit become U+FFFD, so it encodes to UTF-8."""
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
    # Whoever could read the declaration byte by byte has seen that it is not UTF-16.
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _as_browsers(error: UnicodeError) -> tuple[str, int]:
    """What stands for bytes that do not fit: U+FFFD, and where a Windows code page has a hole the control character."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start]
    return (chr(byte) if error.encoding == "charmap" and byte < 0xA0 else "\ufffd"), error.end


codecs.register_error("webfountain.browser", _as_browsers)


# ruff: noqa: RUF001  (letters of other scripts are what this is about)


_WORDS: Final = {
    "bg": "и на да се не за от по че със или това като но ще към при са който беше има",
    "cs": "a se na je že v s z do o i jako ale by k si po jsou pro které nebo byl až od ve",
    "da": "og i at det er en til på som af for ikke med der de den har var et om hun efter vi også blev",
    "de": "und die der in zu den das nicht von sie ist des sich mit dem dass er es ein ich auf so eine auch als",
    "en": "the of and to a in that is was he for it with as his on be at by i this had not are but from or",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya este",
    "fi": "ja on ei että se hän oli joka mutta kun niin myös tai mitä ovat kuin vain sen sekä ole olla",
    "fr": "de la le et les des en un une du que est pour qui dans par pas au sur ne plus ce il sont avec se ou son",
    "hu": "a az és hogy nem is egy ez volt de csak már meg mint el még azt van ha vagy ki be",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena ada oleh atau sebagai",
    "it": "di e il la che in un a per è del non una si con i da le dei sono al come della ha più gli anche",
    "nl": "de en het van ik te dat die in een hij niet zijn is was op aan met als voor had er maar om hem dan zou ook",
    "no": "og i det er på som en for å at til med han av ikke jeg har de den var et ved fra ble kan seg etter også",
    "pl": "i w nie na się z do to że o jest jak za po co ale od jego tym przez był dla są czy tak które",
    "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das à seu",
    "ro": "de și în a la cu pe că nu o un din este să se mai pentru care au fost ce sunt ca prin fi",
    "ru": "и в не на я что он с как это по но они мы она из у за от то так для же все был его только",
    "sv": "och i att det som en på är av för med den till inte han de var ett om men sig så från hade vi kan också",
    "tr": "ve bir bu da de için ile çok o ne gibi daha olarak ama kadar sonra var olan mi en değil her ya ben",
    "uk": "і в не на що з як та до це за від але він його для так у є про вона чи бути або",
    "vi": "và của là có không được cho một với các người trong đã này những tôi để khi đó về",
}
_STOP_WORDS: Final = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_SCRIPTS: Final = (
    ("ja", re.compile("[\u3041-\u30ff]")),  # kana; before Chinese, whose signs it uses too
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
LANGUAGES: Final = frozenset(_WORDS) | {language for language, _ in _SCRIPTS}
"""What texts are told apart as, ISO 639-1."""

_SAMPLE: Final = 8_000
"""Characters of a text that are looked at."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_FEWEST_WORDS: Final = 12
_LEAST_SHARE: Final = 0.12
"""Part of a text's words that stop words of its language are at least; of real prose they are .3 to .5."""
_MARGIN: Final = 1.15
"""How many times as many as those of any other language."""
_OWN_SCRIPT: Final = 0.2
"""Part of the letters that are of a script."""


def language_of(text: str, declared: str | None = None) -> str | None:
    """ISO 639-1 code of a text's language; `declared` is what its page says (``de-AT``); None: nobody knows."""
    sample = text[:_SAMPLE]
    return _by_script(sample) or _by_words(sample) or _primary(declared)


def _by_script(text: str) -> str | None:
    letters = sum(map(str.isalpha, text))
    if text.isascii() or letters < _FEWEST_WORDS:
        return None
    many = {language: len(script.findall(text)) for language, script in _SCRIPTS}
    if many["ja"] > 0.05 * letters:
        return "ja"
    language, most = max(many.items(), key=lambda each: each[1])
    return language if most > _OWN_SCRIPT * letters else None


def _by_words(text: str) -> str | None:
    words = Counter(_WORD.findall(text.lower()))
    total = words.total()
    if total < _FEWEST_WORDS:
        return None
    found = {language: sum(words[word] for word in stop_words) for language, stop_words in _STOP_WORDS.items()}
    (language, most), (_, second) = sorted(found.items(), key=lambda each: -each[1])[:2]
    return language if most >= _LEAST_SHARE * total and most >= _MARGIN * second else None


def _primary(declared: str | None) -> str | None:
    found = re.match(r"\s*([A-Za-z]{2,3})(?:[-_]|\s*$)", declared or "")
    return found[1].lower() if found else None
