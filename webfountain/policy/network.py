"""Which addresses and hosts are public: what a collection without `network.allow_private` may ask.

The downloader asks `is_public_address` for every address that DNS gave, also after a redirect: a public name may
point to a private address. `files` asks `is_private_host` for the seeds. Nothing here asks the network.
"""

from __future__ import annotations

import ipaddress
from typing import Final

__all__ = ["is_private_host", "is_public_address"]

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_PRIVATE_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa")
"""Names that never lead to the public web (RFC 6761, 6762, 8375; ICANN's .internal)."""


def is_public_address(address: str) -> bool:
    """Whether an IP address is one of the public unicast Internet; False for a text that is no address.

    An IPv4 address inside an IPv6 one (mapped, 6to4, NAT64) is judged as itself: a gateway would send us there.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded(ip) if isinstance(ip, ipaddress.IPv6Address) else None
    if inner is not None:
        return inner.is_global and not inner.is_multicast
    return ip.is_global and not ip.is_multicast


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one carries, if any."""
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


def is_private_host(host: str) -> bool:
    """Whether the host of a URL is private by its looks alone: a private address or a name reserved for that."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        name = "." + host.rstrip(".")
        return name.endswith(_PRIVATE_NAMES)
    return not is_public_address(host)
