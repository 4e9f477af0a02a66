"""Find the addresses of many host names at once, outside the loop thread. Answers are kept for some minutes.

A site that becomes active waits for the addresses of its host (`ask`). A fetch without an address waits for a separate
look-up (`resolve`).
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from webfountain.public_addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["LIFE_S", "THREADS", "Resolver", "addresses_of"]

THREADS: Final = 32
"""Maximum number of simultaneous look-ups."""
LIFE_S: Final = 300.0
_KEPT: Final = 50_000


class Resolver:
    """A cache of the addresses of host names. `lookup` finds the addresses of a host name."""

    def __init__(self, lookup: Callable[[str], Awaitable[Sequence[str]]] | None = None) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webfountain-dns")
        self._lookup = lookup or self._ask_system
        self._known: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, hosts: Sequence[str], deliver: Callable[[str, Sequence[str]], None]) -> None:
        """Find the addresses of `hosts`, and call `deliver(host, addresses)` for each host."""
        for host in hosts:
            addresses = (host,) if is_address(host) else self._kept(host)
            if addresses:
                deliver(host, addresses)
                continue
            task = asyncio.get_running_loop().create_task(self._ask(host, deliver))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host in order of preference, or () if there are none."""
        addresses = (host,) if is_address(host) else self._kept(host)
        if not addresses:
            addresses = tuple(await self._lookup(host))
            self._known[host] = (time.monotonic(), addresses)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return addresses

    def close(self) -> None:
        """Cancel pending look-ups. A running look-up ends when the name server answers or times out."""
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _kept(self, host: str) -> tuple[str, ...]:
        since, addresses = self._known.get(host, (0.0, ()))
        return addresses if time.monotonic() - since < LIFE_S else ()

    async def _ask(self, host: str, deliver: Callable[[str, Sequence[str]], None]) -> None:
        deliver(host, await self.resolve(host))

    async def _ask_system(self, host: str) -> tuple[str, ...]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, addresses_of, host)


def addresses_of(host: str) -> tuple[str, ...]:
    """Return all addresses of a host name, IPv4 first because many IPv6 addresses do not answer."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
