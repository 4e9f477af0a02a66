"""A body is decoded as browsers decode it, whatever it says of itself, and its text always encodes."""

from __future__ import annotations

import codecs
import pkgutil
from encodings import __path__ as codec_path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from webfountain.formats.charset import decode, python_codec
from webfountain.formats.document import text_of
from webfountain.formats.media_type import ContentType
from webfountain.formats.sitemap import read_sitemap

PYTHON_ONLY = sorted({module.name for module in pkgutil.iter_modules(codec_path)} - set(LABELS))


@pytest.mark.parametrize("kind", ["text/html", "application/xml", "text/plain"])
def test_every_label_of_the_standard_gives_a_text(kind: str) -> None:
    body = b"<?xml version='1.0'?><x><p>abc " + bytes(range(128, 256)) + b"</p></x>"
    for label in sorted(LABELS):
        assert isinstance(text_of(body, ContentType(kind, label)).text.encode(), bytes), label


@pytest.mark.parametrize("label", [*PYTHON_ONLY, "hex", "base64", "idna", "undefined", "punycode", "utf-7", "no\0name"])
def test_a_codec_of_python_that_no_browser_knows_is_as_good_as_no_charset(label: str) -> None:
    if python_codec(label) is None:
        assert decode("é".encode(), label) == "é"
    assert text_of("<p>é</p>".encode(), ContentType("text/html", label)).error is None


@pytest.mark.parametrize(
    ("label", "python", "text"),
    [
        ("EUC-JP", "euc_jp", "日本語"),
        ("ISO-2022-JP", "iso2022_jp", "日本語"),
        ("Shift_JIS", "cp932", "日本語①"),
        ("macintosh", "mac_roman", "café"),
        ("x-mac-cyrillic", "mac_cyrillic", "Привет"),
        ("UTF-16LE", "utf-16-le", "héllo"),
        ("UTF-16BE", "utf-16-be", "héllo"),
        ("gbk", "gb18030", "中文€"),
        ("big5", "big5hkscs", "中文"),
        ("EUC-KR", "cp949", "한국어똠"),
        ("koi8-u", "koi8_u", "Привіт"),
        ("windows-874", "cp874", "ไทย"),
        ("ISO-8859-8-I", "iso8859_8", "שלום"),
        ("latin1", "cp1252", "“q” €"),
        ("ISO-2022-KR", "iso2022_kr", "한국어"),
    ],
)
def test_pages_and_xml_are_read_in_their_encoding_by_header_or_declaration(label: str, python: str, text: str) -> None:
    assert text_of(f"<p>{text}</p>".encode(python), ContentType("text/html", label)).text.strip() == text
    xml = f'<?xml version="1.0" encoding="{label}"?><x>{text}</x>'.encode(python)
    assert text_of(xml, ContentType("application/xml", label)).text == text
    assert text_of(xml, ContentType("application/xml", None)).text == text
    sitemap = f'<?xml version="1.0" encoding="{label}"?><urlset><url><loc>http://a/{text}</loc></url></urlset>'
    assert read_sitemap(sitemap.encode(python)).pages == [(f"http://a/{text}", None)]


def test_a_mark_comes_before_the_header_and_that_before_what_the_body_says() -> None:
    assert decode("é".encode("utf-8-sig"), "latin1") == "é"
    assert decode(b"<meta charset=windows-1251>\xe9", "latin1").endswith("é")
    assert decode(b"<meta charset=windows-1251>\xcf", None).endswith("П")
    assert decode(b'<meta http-equiv=content-type content="text/html; charset=koi8-r">\xd0', None).endswith("п")
    assert decode("<meta charset=utf-16>é".encode(), None).endswith("é")


def test_holes_of_windows_code_pages_are_control_characters_as_in_browsers() -> None:
    assert decode(b"\x81\x93", "latin1") == "\x81“"
    assert decode(b"\xe9\xff\xfe", "utf-8") == "\ufffd\ufffd\ufffd"


@given(st.binary(max_size=200), st.sampled_from(sorted(LABELS)) | st.text(max_size=12) | st.none())
def test_any_bytes_under_any_name_are_a_text_that_encodes(body: bytes, label: str | None) -> None:
    decode(body, label).encode()
    codecs.lookup(python_codec(label or "") or "utf-8")
