"""Hostile behaviours in well-formed HTTP: bombs, lies about content, traps, and HTML that breaks parsers."""

from __future__ import annotations

import gzip
import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING

from tests.servers.behaviours import Ask, behaviour, send

if TYPE_CHECKING:
    from asyncio import StreamWriter
    from collections.abc import Callable

__all__ = ["zeros_gzipped"]

BOMB_MB = 100


_BLANKS = b" " * 1_000_000


@cache
def zeros_gzipped() -> bytes:
    """100 MB of blanks as about 100 kB of gzip."""
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return head + _deflated() + struct.pack("<II", _checked(zlib.crc32, 0), BOMB_MB * len(_BLANKS))


@cache
def _zeros_nested() -> bytes:
    return gzip.compress(zlib.compress(zeros_gzipped(), 9), 9)


@cache
def _zeros_in_zlib() -> bytes:
    return b"\x78\x9c" + _deflated() + struct.pack(">I", _checked(zlib.adler32, 1))


@cache
def _zeros_in_brotli() -> bytes:
    import brotli

    packed: bytes = brotli.compress(_BLANKS * BOMB_MB, quality=2)
    return packed


@cache
def _attributes() -> bytes:
    return ("<p " + " ".join(f"a{i}" for i in range(1_000_000)) + ">text</p>").encode()


def _deflated() -> bytes:
    """Return 100 MB of blanks as deflate data: one compressed megabyte, which can be repeated after a full flush."""
    packer = zlib.compressobj(6, wbits=-15)
    block = packer.compress(_BLANKS) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * BOMB_MB + packer.flush()


def _checked(checksum: Callable[[bytes, int], int], start: int) -> int:
    """Return the checksum of all megabytes."""
    for _ in range(BOMB_MB):
        start = checksum(_BLANKS, start)
    return start


@behaviour("failed", body=zeros_gzipped)
async def gzip_bomb(_: Ask, writer: StreamWriter) -> None:
    """100 MB that gzip makes 100 kB."""
    await send(writer, zeros_gzipped(), "Content-Encoding: gzip")


@behaviour("failed", body=_zeros_nested)
async def nested_bomb(_: Ask, writer: StreamWriter) -> None:
    """The gzip bomb, compressed again by deflate and gzip, with all three codings in the header."""
    await send(writer, _zeros_nested(), "Content-Encoding: gzip, deflate, gzip")


@behaviour("failed", body=_zeros_in_zlib)
async def deflate_bomb(_: Ask, writer: StreamWriter) -> None:
    """100 MB as deflate."""
    await send(writer, _zeros_in_zlib(), "Content-Encoding: deflate")


@behaviour("failed", body=_zeros_in_brotli)
async def brotli_bomb(_: Ask, writer: StreamWriter) -> None:
    """100 MB that brotli makes less than a kilobyte."""
    await send(writer, _zeros_in_brotli(), "Content-Encoding: br")


@behaviour("new", "failed")
async def gzip_that_is_plain(_: Ask, writer: StreamWriter) -> None:
    """A plain page with the header of gzip."""
    await send(writer, "<p>not compressed at all</p>", "Content-Encoding: gzip")


@behaviour("new", "failed")
async def plain_that_is_gzip(_: Ask, writer: StreamWriter) -> None:
    """A gzip body without a header for it."""
    await send(writer, gzip.compress(b"<p>compressed</p>"))


@behaviour("new", "failed")
async def gzip_cut_short(_: Ask, writer: StreamWriter) -> None:
    """Half of a gzip stream with a true Content-Length."""
    packed = gzip.compress(bytes(range(256)) * 100)
    await send(writer, packed[: len(packed) // 2], "Content-Encoding: gzip")


@behaviour("new", "failed")
async def unknown_coding(_: Ask, writer: StreamWriter) -> None:
    """A content coding that nobody knows."""
    await send(writer, "<p>uryyb</p>", "Content-Encoding: rot13")


@behaviour("failed")
async def image_as_html(_: Ask, writer: StreamWriter) -> None:
    """A page whose type is image/png."""
    await send(writer, "<p>html</p>", media_type="image/png")


@behaviour("new", "failed")
async def html_that_is_an_image(_: Ask, writer: StreamWriter) -> None:
    """The bytes of an image as text/html."""
    await send(writer, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200)


@behaviour("new", "failed")
async def no_content_type(_: Ask, writer: StreamWriter) -> None:
    """A page without a type."""
    await send(writer, "<title>untyped</title><p>text</p>", media_type="")


@behaviour("new", "failed")
async def broken_content_type(_: Ask, writer: StreamWriter) -> None:
    """An invalid media type and an unknown charset."""
    await send(writer, "<p>text</p>", media_type='text/html; charset="utf-8; ;;=')


@behaviour("new")
async def unknown_charset(_: Ask, writer: StreamWriter) -> None:
    """A charset that does not exist."""
    await send(writer, "<p>caf\u00e9</p>", media_type="text/html; charset=klingon-1")


@behaviour("new")
async def mixed_encodings(_: Ask, writer: StreamWriter) -> None:
    """UTF-8, Latin-1, UTF-16 and lone surrogates in one page that is declared as UTF-8."""
    body = "<p>né</p>".encode() + "<p>né</p>".encode("latin-1") + "<p>né</p>".encode("utf-16") + b"\xed\xa0\x80\xff"
    await send(writer, body)


@behaviour("new")
async def nul_in_the_body(_: Ask, writer: StreamWriter) -> None:
    """NUL bytes in text, tags and links."""
    await send(writer, b'<p>a\0b</p><a hr\0ef="/x">x</a><a href="/y\0z">y</a>')


@behaviour("new")
async def ten_thousand_links(_: Ask, writer: StreamWriter) -> None:
    """10,000 links on a page, all dead."""
    await send(writer, "".join(f'<a href="/dead/{i}">{i}</a>' for i in range(10_000)))


@behaviour("new")
async def megabyte_url(_: Ask, writer: StreamWriter) -> None:
    """A link whose URL has a million characters."""
    await send(writer, f'<a href="/bad/{"x" * 1_000_000}">long</a><a href="/good">good</a>')


@behaviour("new")
async def broken_links(ask: Ask, writer: StreamWriter) -> None:
    """Links of every kind that leads to no page."""
    links = ["javascript:alert(1)", "data:text/html,x", "mailto:a@b", "http://[::1", "http://:0/", "//"]
    links += [
        "http:///x",
        "http://a b/",
        f"{ask.base}:99999/",
        "http://xn--a/",
        "\x01",
        "  ",
        "#",
        "?",
        "%zz",
    ]
    links += ["ftp://x/", "file:///etc/passwd", "http://user:pass@host/", "http://%00/", "http://0x7f.1/"]
    links += ["http://\U0001f600.example/", "http://" + "a" * 300 + "/", "\u202ehttp://x/", "http://x:8x/"]
    await send(writer, "".join(f'<a href="{link}">x</a>' for link in links))


@behaviour("new")
async def deep_html(_: Ask, writer: StreamWriter) -> None:
    """100,000 nested elements."""
    await send(writer, "<div>" * 100_000 + "deep" + "</div>" * 100_000)


@behaviour("new", body=_attributes)
async def million_attributes(_: Ask, writer: StreamWriter) -> None:
    """One element with a million attributes (9 MB)."""
    await send(writer, _attributes())


@behaviour("new")
async def unclosed_everything(_: Ask, writer: StreamWriter) -> None:
    """100,000 formatting elements that are opened crosswise and never closed."""
    await send(writer, "<b><i><table><tr><td><a href=x>" * 3_000)


@behaviour("new")
async def huge_title(_: Ask, writer: StreamWriter) -> None:
    """A title of three megabytes."""
    await send(writer, f"<title>{'long ' * 600_000}</title><p>text</p>")


@behaviour("new")
async def megabytes_of_one_word(_: Ask, writer: StreamWriter) -> None:
    """Five megabytes of text without a blank."""
    await send(writer, b"<p>" + b"a" * 5_000_000 + b"</p>")


@behaviour("new")
async def base_elsewhere(ask: Ask, writer: StreamWriter) -> None:
    """A <base> on another site, so that relative links lead there."""
    await send(writer, f'<base href="{ask.sites["plain"]}/lured/"><a href="in">relative</a>')


@behaviour("new", "redirected")
async def meta_refresh_loop(ask: Ask, writer: StreamWriter) -> None:
    """Two pages that refresh to one another at once."""
    other = "/bad" if ask.path.endswith("2") else "/bad2"
    await send(writer, f'<meta http-equiv="refresh" content="0; url={other}"><p>wait</p>')


@behaviour("new")
async def calendar(ask: Ask, writer: StreamWriter) -> None:
    """Every month links to the next, without end."""
    month = int(ask.path.rpartition("=")[2] or 0) if "=" in ask.path else 0
    await send(writer, f'<a href="/bad?month={month + 1}">next</a><a href="/bad?month={month - 1}">last</a>')


@behaviour("new")
async def dated_folders(ask: Ask, writer: StreamWriter) -> None:
    """A calendar in the path, day by day, without end."""
    day = sum(int(part) * size for part, size in zip(ask.path.split("/")[2:], (372, 31, 1), strict=False))
    links = "".join(f'<a href="/bad/{d // 372}/{d % 372 // 31}/{d % 31}">{d}</a>' for d in range(day + 1, day + 8))
    await send(writer, links)


@behaviour("new")
async def repeating_path(ask: Ask, writer: StreamWriter) -> None:
    """A relative link that makes the path longer by the same two folders each time."""
    await send(writer, f'<a href="{ask.path.partition("?")[0].rstrip("/")}/a/b/">deeper</a>')


@behaviour("new")
async def session_ids(ask: Ask, writer: StreamWriter) -> None:
    """The same page under a new session id in every link."""
    links = "".join(f'<a href="/bad?page={i}&sid={ask.nth:08x}{i:08x}">{i}</a>' for i in range(5))
    await send(writer, f"<title>Shop</title><p>always the same</p>{links}")


@behaviour("new")
async def endless_links(ask: Ask, writer: StreamWriter) -> None:
    """100 new links on every page."""
    at = ask.path.partition("?")[0].rstrip("/")
    await send(writer, "".join(f'<a href="{at}/{i}x{ask.nth}">{i}</a>' for i in range(100)))


@behaviour("new")
async def changes_at_every_fetch(ask: Ask, writer: StreamWriter) -> None:
    """Another body at every fetch, always with the same ETag; never answers 304."""
    await send(writer, f"<p>visit number {ask.nth}</p>", 'ETag: "same"')


@behaviour("new")
async def dates_of_the_future(_: Ask, writer: StreamWriter) -> None:
    """Last-Modified in the year 9999 and an invalid Date."""
    await send(writer, "<p>text</p>", "Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT", "Date: tomorrow", "ETag: W/")
