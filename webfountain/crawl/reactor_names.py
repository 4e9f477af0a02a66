"""Resolve host names with the reactor's resolver, as Scrapy does.

DNS_RESOLVER names the class of the reactor's resolver. The default resolver knows only IPv4, waits at most DNS_TIMEOUT,
and keeps answers in a cache. Crawls of the fountain spider use the system's resolver (`download.resolver`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.utils.reactor import is_reactor_installed

from webfountain.download.resolver import addresses_of
from webfountain.public_addresses import is_address

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress, IHostResolution

__all__ = ["reactor_addresses"]


class _Addresses:
    """Twisted's IResolutionReceiver, which collects addresses from the reactor's resolver."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resolutionBegan(self, resolution: IHostResolution) -> None:  # noqa: N802 (Twisted's name)
        """Do nothing."""

    def addressResolved(self, address: IAddress) -> None:  # noqa: N802
        """Add one address."""
        self.found.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        """Record that the list of addresses is complete."""
        if not self.complete.done():
            self.complete.set_result(None)


async def reactor_addresses(host: str) -> tuple[str, ...]:
    """Return the addresses that the reactor's resolver finds for a host name, IPv4 first."""
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
