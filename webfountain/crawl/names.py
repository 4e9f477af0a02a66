"""Host names of another project's requests are resolved as Scrapy resolves them: by what it installed in the reactor.

That is the class of DNS_RESOLVER (by default one that knows IPv4 alone, waits for DNS_TIMEOUT and caches), or whatever
the project put in its place. Our own crawls ask the system (`webfountain.download.resolver`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.utils.reactor import is_reactor_installed

from webfountain.download.resolver import addresses_of, is_address

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress, IHostResolution

__all__ = ["reactor_addresses"]


class _Addresses:
    """Twisted's IResolutionReceiver: what the reactor's resolver says, until it says that this was all."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resolutionBegan(self, resolution: IHostResolution) -> None:  # noqa: N802 (Twisted's name)
        """It has begun."""

    def addressResolved(self, address: IAddress) -> None:  # noqa: N802
        """One address."""
        self.found.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        """There are no more."""
        if not self.complete.done():
            self.complete.set_result(None)


async def reactor_addresses(host: str) -> tuple[str, ...]:
    """The addresses of a host name, IPv4 first, by the reactor's resolver; none where it has none."""
    if is_address(host):
        return (host,)
    if not is_reactor_installed():
        return await asyncio.to_thread(addresses_of, host)
    from twisted.internet import reactor  # noqa: PLC0415 (importing it installs one)

    addresses = _Addresses()
    try:
        reactor.nameResolver.resolveHostName(addresses, host)
    except UnicodeError:
        return ()
    await addresses.complete
    return tuple(sorted(dict.fromkeys(addresses.found), key=lambda address: ":" in address))
