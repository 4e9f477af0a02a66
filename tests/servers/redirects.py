"""Hostile behaviours of status and Location: loops, redirects to private addresses, refusals with and without a
date.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING

from tests.servers.behaviours import BEHAVIOURS as _ALL
from tests.servers.behaviours import Ask, Behaviour, behaviour, send

if TYPE_CHECKING:
    from asyncio import StreamWriter

__all__: list[str] = []

TARGETS = {
    "redirect-to-itself": "/bad",
    "redirect-to-loopback": "http://127.0.0.1:1/",
    "redirect-to-private": "http://10.0.0.1/",
    "redirect-to-metadata": "http://169.254.169.254/latest/meta-data/",
    "redirect-to-mapped-loopback": "http://[::ffff:127.0.0.1]:1/",
    "redirect-to-file": "file:///etc/passwd",
    "redirect-to-javascript": "javascript:alert(1)",
    "redirect-to-ftp": "ftp://127.0.0.1/x",
    "redirect-to-data": "data:text/html,hello",
    "redirect-to-long-url": "/bad/" + "x" * 20_000,
    "redirect-to-broken-url": "http://[::1",
    "redirect-to-latin-1": "/caf\u00e9 \u00ff",
    "redirect-to-nothing": "",
}


def _enter(name: str, target: str) -> None:
    async def act(_: Ask, writer: StreamWriter) -> None:
        await send(writer, b"", f"Location: {target}", status="302 Found")

    act.__doc__ = f"A redirect to {target[:60]!r}."
    _ALL[name] = Behaviour(name, "/bad", frozenset({"redirected", "failed"}), act)


for _name, _target in TARGETS.items():
    _enter(_name, _target)


@behaviour("redirected", "failed")
async def redirect_without_location(_: Ask, writer: StreamWriter) -> None:
    """A redirect without a target."""
    await send(writer, b"", status="301 Moved Permanently")


@behaviour("redirected", "failed")
async def redirect_loop(ask: Ask, writer: StreamWriter) -> None:
    """Two URLs that redirect to one another."""
    await send(writer, b"", f"Location: {'/bad' if ask.path == '/bad2' else '/bad2'}", status="302 Found")


@behaviour("redirected", "failed")
async def redirect_without_end(ask: Ask, writer: StreamWriter) -> None:
    """Every URL redirects to a new one."""
    number = ask.path.removeprefix("/bad").strip("/") or "0"
    await send(writer, b"", f"Location: /bad/{int(number) + 1}", status="307 Temporary Redirect")


@behaviour("redirected", "failed")
async def redirect_across_sites(ask: Ask, writer: StreamWriter) -> None:
    """A redirect to another site, which redirects back here."""
    await send(writer, b"", f"Location: {ask.sites['plain']}/back?to={ask.base}/bad", status="302 Found")


async def _refuse(ask: Ask, writer: StreamWriter, status: str, *headers: str, times: int = 1) -> None:
    """Send the status for the first requests, then the page."""
    if ask.nth <= times:
        await send(writer, b"later", *headers, status=status)
    else:
        await send(writer, "<p>now</p>")


@behaviour("failed", "new")
async def retry_after_seconds(ask: Ask, writer: StreamWriter) -> None:
    """429 with Retry-After of two seconds for the first request, then the page."""
    await _refuse(ask, writer, "429 Too Many Requests", "Retry-After: 2")


@behaviour("failed", "new")
async def retry_after_date(ask: Ask, writer: StreamWriter) -> None:
    """503 with a Retry-After date three seconds ahead for the first request, then the page."""
    date = formatdate(time.time() + 3, usegmt=True)
    await _refuse(ask, writer, "503 Service Unavailable", f"Retry-After: {date}")


@behaviour("failed", "new")
async def retry_after_garbage(ask: Ask, writer: StreamWriter) -> None:
    """429 with a Retry-After that is neither number nor date, for two requests, then the page."""
    await _refuse(ask, writer, "429 Too Many Requests", "Retry-After: soon, 1e999", times=2)


@behaviour("failed", "new")
async def retry_after_a_century(ask: Ask, writer: StreamWriter) -> None:
    """429 with a Retry-After of a hundred years."""
    await _refuse(ask, writer, "429 Too Many Requests", "Retry-After: 3155760000", times=10**9)


@behaviour("failed", "new")
async def unavailable_for_a_while(ask: Ask, writer: StreamWriter) -> None:
    """503 without Retry-After for two requests, then the page."""
    await _refuse(ask, writer, "503 Service Unavailable", times=2)


@behaviour("failed")
async def always_500(_: Ask, writer: StreamWriter) -> None:
    """500 at every request."""
    await send(writer, b"oops", status="500 Internal Server Error")


@behaviour("failed", "gone", "new")
async def no_content(_: Ask, writer: StreamWriter) -> None:
    """204, which has no body."""
    writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


@behaviour("failed", "not_modified")
async def not_modified_unasked(_: Ask, writer: StreamWriter) -> None:
    """304 to a request without conditions."""
    writer.write(b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nConnection: close\r\n\r\n')


@behaviour("failed", "new")
async def partial_unasked(_: Ask, writer: StreamWriter) -> None:
    """206 to a request without a range."""
    await send(writer, "<p>a part</p>", "Content-Range: bytes 0-12/5000", status="206 Partial Content")


@behaviour("failed")
async def unknown_status(_: Ask, writer: StreamWriter) -> None:
    """Status 999."""
    await send(writer, b"no", status="999 Request Denied")


@behaviour("failed")
async def login_required(_: Ask, writer: StreamWriter) -> None:
    """401 with a challenge."""
    await send(writer, b"who are you", 'WWW-Authenticate: Basic realm="x"', status="401 Unauthorized")
