"""Decide whether an address or host is public. Without `network.allow_private`, a crawl fetches only from public
addresses.

The downloader checks every address that DNS returns, because a public name may point to a private address.
`is_private_host` checks the seeds of a policy file.
"""

from __future__ import annotations

import ipaddress
from typing import Final

__all__ = ["is_address", "is_private_host", "is_public_address"]

_NOT_PUBLIC_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared by carrier-grade NAT
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link local: metadata of cloud machines
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # protocol assignments; the two anycast ones that are global serve no pages
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private use
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
"""Blocks that are not public: the IANA IPv4 Special-Purpose Address Registry (RFC 6890) and the multicast space, as of
2025. Python's own table (`is_global`) is not used, because patch releases of Python may change it.
"""
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
"""All IPv6 addresses that IANA has assigned as global unicast (RFC 4291, IPv6 Global Unicast Address Assignments). IPv6
addresses outside 2000::/3 are not public, such as link-local (fe80::/10), unique-local (fc00::/7) and SRv6 (5f00::/16)
addresses.
"""
_NOT_PUBLIC_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID, DRIP
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
"""Blocks inside `_GLOBAL_6` that are not public (IANA IPv6 Special-Purpose Address Registry)."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_PRIVATE_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa")
"""Names that never lead to the public web (RFC 6761, 6762, 8375; ICANN's .internal)."""


def is_address(host: str) -> bool:
    """Return whether a host is an IP address; an IPv6 address must have no brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_public_address(address: str) -> bool:
    """Return whether a text is the IP address of a public unicast host.

    An IPv4 address inside an IPv6 address (mapped, 6to4, NAT64) must be public too, because a gateway would forward the
    request to it.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded(ip)
        if inner is None:
            return ip in _GLOBAL_6 and not any(ip in network for network in _NOT_PUBLIC_6)
        ip = inner
    return not any(ip in network for network in _NOT_PUBLIC_4)


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address contains (mapped, 6to4, NAT64), or None."""
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


def is_private_host(host: str) -> bool:
    """Return whether the host of a URL is a private address or a name reserved for private networks. The host is not
    looked up in DNS.
    """
    if is_address(host):
        return not is_public_address(host)
    return ("." + host.rstrip(".")).endswith(_PRIVATE_NAMES)
