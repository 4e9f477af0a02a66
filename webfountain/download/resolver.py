"""Host names become addresses, many at a time, outside the loop thread; answers are kept for some minutes.

Place in the walk: a site that joined the active list waits for its addresses, by which politeness is counted
(`ask`); a fetch that leaves its site, as a redirected robots.txt does, waits for them itself (`resolve`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["Resolver", "addresses_of", "is_address"]

THREADS: Final = 32
"""Names asked for at once: a name server that does not answer holds a thread for some seconds."""
LIFE_S: Final = 300.0
_KEPT: Final = 50_000


class Resolver:
    """`lookup` finds the addresses of a host name, none where it has none; by default the system's resolver does."""

    def __init__(self, lookup: Callable[[str], Awaitable[Sequence[str]]] | None = None) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webfountain-dns")
        self._lookup = lookup or self._ask_system
        self._known: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, hosts: Sequence[str], tell: Callable[[str, Sequence[str]], None]) -> None:
        """Find the addresses of `hosts`; `tell(host, addresses)` is called for each, at once where they are known."""
        for host in hosts:
            addresses = (host,) if is_address(host) else self._kept(host)
            if addresses:
                tell(host, addresses)
                continue
            task = asyncio.get_running_loop().create_task(self._ask(host, tell))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def resolve(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, the best first; none where it has none."""
        addresses = (host,) if is_address(host) else self._kept(host)
        if not addresses:
            addresses = tuple(await self._lookup(host))
            self._known[host] = (time.monotonic(), addresses)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return addresses

    def close(self) -> None:
        """Forget what was asked; threads that still wait for a name server end by themselves."""
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _kept(self, host: str) -> tuple[str, ...]:
        since, addresses = self._known.get(host, (0.0, ()))
        return addresses if time.monotonic() - since < LIFE_S else ()

    async def _ask(self, host: str, tell: Callable[[str, Sequence[str]], None]) -> None:
        tell(host, await self.resolve(host))

    async def _ask_system(self, host: str) -> tuple[str, ...]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, addresses_of, host)


def addresses_of(host: str) -> tuple[str, ...]:
    """All addresses of a host name, IPv4 first: many names have an IPv6 address that nothing answers at."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_address(host: str) -> bool:
    """Whether a host, without brackets, is an address already."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
