"""Hostile behaviours below the meaning of HTTP: endless, slow, cut and malformed messages."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

from tests.servers.behaviours import LIMIT_SECONDS, Ask, behaviour, flood, trickle

if TYPE_CHECKING:
    from asyncio import StreamWriter

__all__: list[str] = []

HTML = b"Content-Type: text/html\r\n"
OK = b"HTTP/1.1 200 OK\r\n" + HTML


@behaviour("failed")
async def endless_headers(_: Ask, writer: StreamWriter) -> None:
    """Endless headers, as fast as the client reads."""
    writer.write(OK)
    await flood(writer, b"X-Padding: " + b"a" * 1000 + b"\r\n")


@behaviour("failed")
async def endless_header_line(_: Ask, writer: StreamWriter) -> None:
    """One header line without end."""
    writer.write(OK + b"X-Padding: ")
    await flood(writer, b"a" * 65_536)


@behaviour("failed")
async def endless_interim_answers(_: Ask, writer: StreamWriter) -> None:
    """103 Early Hints again and again, without a final answer."""
    await flood(writer, b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")


@behaviour("failed")
async def many_cookies(_: Ask, writer: StreamWriter) -> None:
    """A million small Set-Cookie headers, then a page."""
    for block in range(1000):
        writer.write(OK * (block == 0) + b"".join(b"Set-Cookie: c%d-%d=1\r\n" % (block, i) for i in range(1000)))
        await writer.drain()
    writer.write(b"Content-Length: 2\r\n\r\nok")


@behaviour("failed")
async def trickled_headers(_: Ask, writer: StreamWriter) -> None:
    """Headers at one byte a second."""
    writer.write(OK)
    await trickle(writer, b"X-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")


@behaviour("failed")
async def trickled_body(_: Ask, writer: StreamWriter) -> None:
    """A body at one byte a second."""
    writer.write(OK + b"Content-Length: 100000\r\n\r\n")
    await trickle(writer, b"slow ")


@behaviour("failed")
async def stalled_body(_: Ask, writer: StreamWriter) -> None:
    """Half of the body, then silence."""
    writer.write(OK + b"Content-Length: 1000\r\n\r\n" + b"a" * 500)
    await asyncio.sleep(LIMIT_SECONDS)


@behaviour("failed")
async def silence(_: Ask, writer: StreamWriter) -> None:
    """Takes the request and never answers."""
    await asyncio.sleep(LIMIT_SECONDS)


@behaviour("failed")
async def oversize_with_length(_: Ask, writer: StreamWriter) -> None:
    """Announces 10 GB and starts sending them."""
    writer.write(OK + b"Content-Length: 10000000000\r\n\r\n")
    await flood(writer, b"<p>big</p>")


@behaviour("failed")
async def oversize_without_length(_: Ask, writer: StreamWriter) -> None:
    """A body without length and without end."""
    writer.write(OK + b"Connection: close\r\n\r\n")
    await flood(writer, b"<p>big</p>")


@behaviour("failed")
async def endless_chunks(_: Ask, writer: StreamWriter) -> None:
    """A chunked body without end."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    await flood(writer, b"400\r\n" + b"a" * 1024 + b"\r\n")


@behaviour("new", "failed")
async def tiny_chunks(_: Ask, writer: StreamWriter) -> None:
    """A body of 100,000 chunks of one byte."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000 + b"0\r\n\r\n")


@behaviour("failed")
async def endless_chunk_extension(_: Ask, writer: StreamWriter) -> None:
    """A chunk whose extension never ends."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n5;x=")
    await flood(writer, b"a" * 65_536)


@behaviour("failed")
async def endless_trailers(_: Ask, writer: StreamWriter) -> None:
    """A chunked body with endless trailers."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")
    await flood(writer, b"X-Trailer: " + b"a" * 1000 + b"\r\n")


@behaviour("failed")
async def broken_chunks(_: Ask, writer: StreamWriter) -> None:
    """A chunk size that is no number."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n")


@behaviour("failed")
async def huge_chunk_size(_: Ask, writer: StreamWriter) -> None:
    """A chunk size of 2^64 - 1, then five bytes."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nhello")


@behaviour("new", "failed")
async def length_too_short(_: Ask, writer: StreamWriter) -> None:
    """Sends more than Content-Length says."""
    writer.write(OK + b"Content-Length: 10\r\nConnection: close\r\n\r\n<p>hello</p>" + b"more" * 500)


@behaviour("failed")
async def length_too_long(_: Ask, writer: StreamWriter) -> None:
    """Sends less than Content-Length says, then closes the connection normally."""
    writer.write(OK + b"Content-Length: 1000\r\n\r\n<p>hello</p>")


@behaviour("failed")
async def length_negative(_: Ask, writer: StreamWriter) -> None:
    """A negative Content-Length."""
    writer.write(OK + b"Content-Length: -5\r\nConnection: close\r\n\r\nhello")


@behaviour("new", "failed")
async def two_lengths(_: Ask, writer: StreamWriter) -> None:
    """Two different Content-Length headers."""
    writer.write(OK + b"Content-Length: 5\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhello you")


@behaviour("failed")
async def cut_in_the_body(_: Ask, writer: StreamWriter) -> None:
    """Resets the connection in the middle of the body."""
    writer.write(OK + b"Content-Length: 1000\r\n\r\n" + b"a" * 500)
    await writer.drain()
    await asyncio.sleep(0.05)  # the client shall see the half first
    _reset(writer)


@behaviour("failed")
async def cut_in_the_headers(_: Ask, writer: StreamWriter) -> None:
    """Ends the connection in the middle of a header."""
    writer.write(OK + b"X-Half")


@behaviour("failed")
async def reset_before_the_answer(_: Ask, writer: StreamWriter) -> None:
    """Resets the connection as soon as the request is read."""
    _reset(writer)


@behaviour("failed")
async def closed_before_the_answer(_: Ask, writer: StreamWriter) -> None:
    """Closes the connection normally without an answer."""


@behaviour("failed")
async def no_status_line(_: Ask, writer: StreamWriter) -> None:
    """An invalid status line."""
    writer.write(b"HELLO THERE\r\n" + HTML + b"Content-Length: 2\r\n\r\nok")


@behaviour("failed")
async def status_without_number(_: Ask, writer: StreamWriter) -> None:
    """Words where the status number should be."""
    writer.write(b"HTTP/1.1 fine OK\r\n" + HTML + b"Content-Length: 2\r\n\r\nok")


@behaviour("failed")
async def http_0_9(_: Ask, writer: StreamWriter) -> None:
    """A bare page without status and headers, as before HTTP/1.0."""
    writer.write(b"<html><body>once upon a time</body></html>")


@behaviour("failed")
async def random_bytes(_: Ask, writer: StreamWriter) -> None:
    """Bytes of another protocol."""
    writer.write(bytes(range(256)) * 40)


@behaviour("new", "failed")
async def nul_in_headers(_: Ask, writer: StreamWriter) -> None:
    """NUL bytes in a header."""
    writer.write(OK + b"X-Nul: a\0b\0c\r\nContent-Length: 2\r\n\r\nok")


@behaviour("new", "failed")
async def header_without_colon(_: Ask, writer: StreamWriter) -> None:
    """A header line without a colon."""
    writer.write(OK + b"NoColonHere\r\nContent-Length: 2\r\n\r\nok")


@behaviour("new", "failed")
async def bare_line_feeds(_: Ask, writer: StreamWriter) -> None:
    """Lines that end with LF alone."""
    writer.write((OK + b"Content-Length: 2\r\n\r\nok").replace(b"\r\n", b"\n"))


def _reset(writer: StreamWriter) -> None:
    """Close with a reset (SO_LINGER of 0)."""
    connected = writer.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
