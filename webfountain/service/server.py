"""The server: it listens, reports its addresses, and runs until a signal ends it.

The server runs in an event loop of its own, separate from the crawl.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

from webfountain.errors import InputError
from webfountain.service.application import Service
from webfountain.service.roles import Roles, read_tokens
from webfountain.service.served_store import ServedStore
from webfountain.service.settings import address_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from webfountain.service.settings import Address, ServeSettings

__all__ = ["serve", "serving"]

HEADERS_S: Final = 30.0
"""Maximum time until all headers of a request arrive, counted from the connection or the previous answer, in
seconds."""
_END_S: Final = 2.0
"""Time that open streams have to finish when the service ends, in seconds."""


@contextlib.asynccontextmanager
async def serving(settings: ServeSettings) -> AsyncIterator[list[str]]:
    """Serve while the `with` block runs, and yield the addresses.

    If clients may operate the crawl, the first address contains a one-time login code.

    Raises
    ------
    InputError
        when an address cannot be used, or the token file is wrong.
    """
    settings = settings.checked()
    tokens = {} if settings.tokens is None else read_tokens(settings.tokens)
    addresses = [address_of(text) for text in settings.listen]
    roles = Roles(
        tokens,
        reads_freely=not settings.forwarded,
        read_only=settings.read_only,
    )
    stores = {entry.name: ServedStore(entry) for entry in settings.stores}
    runner = web.AppRunner(
        Service(stores, settings, roles).application(),
        access_log=None,
        handle_signals=False,
        shutdown_timeout=_END_S,
        handler_cancellation=True,
        keepalive_timeout=HEADERS_S,
    )
    await runner.setup()
    try:
        printed = [await _listen(runner, address, settings.base_path) for address in addresses]
        if not settings.read_only and printed[0].startswith("http"):
            printed[0] = f"{printed[0].removesuffix('/')}/login?code={roles.new_login()}"
        yield printed
    finally:
        await runner.cleanup()
        for store in stores.values():
            store.close()


async def serve(
    settings: ServeSettings, *, listening: Callable[[list[str]], None], until_stdin_closes: bool = False
) -> None:
    """Serve until SIGINT, SIGTERM or the end of standard input. As soon as the server listens, call `listening` with
    the addresses."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    if until_stdin_closes:
        waiting = partial(loop.call_soon_threadsafe, ended.set)
        threading.Thread(target=lambda: (sys.stdin.read(), waiting()), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with serving(settings) as addresses:
        listening(addresses)
        await ended.wait()


async def _listen(runner: web.AppRunner, address: Address, base_path: str) -> str:
    """Listen at an address. Return the address in readable form."""
    if address.path:
        await _listen_unix(runner, Path(address.path))
        return address.path
    site = web.TCPSite(runner, address.host, address.port, reuse_address=True)
    try:
        await site.start()
    except OSError as error:
        raise InputError(f"listen {address.host}:{address.port}: {error.strerror or error}") from None
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{port}{base_path}/"


async def _listen_unix(runner: web.AppRunner, path: Path) -> None:
    """Listen at a Unix socket that only its owner may use. Replace the socket of a killed process."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise InputError(f"listen {path}: there is a file that is not a socket; it is not replaced")
        if await _is_served(path):
            raise InputError(f"listen {path}: another process listens there")
        path.unlink()
    before = os.umask(0o177)
    try:
        await web.UnixSite(runner, str(path)).start()
    except OSError as error:
        raise InputError(f"listen {path}: {error.strerror or error}") from None
    finally:
        os.umask(before)


async def _is_served(path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(path))
    except OSError:
        return False
    writer.close()
    return True
