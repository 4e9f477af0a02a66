"""URLs as the crawler sees them: canonical form, site, fingerprint, registered domain.

Canonical form is the store's key: parsed by the WHATWG rules (ada-url), fragment dropped, nothing else.
Query sorting, session ids, index.html, trailing slashes and ``www.`` are left alone: two URLs that a server
may answer differently are two pages. URLs with a user name or password are not crawled: they are secrets.

Which addresses and hosts are public: what a collection without `network.allow_private` may ask. The downloader asks
`is_public_address` for every address that DNS gave, also after a redirect: a public name may point to a private
address. `files` asks `is_private_host` for the seeds. Nothing here asks the network.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import TYPE_CHECKING, Final

import ada_url
import xxhash

from webfountain.errors import UrlError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MAX_URL_LENGTH",
    "canonical",
    "fingerprint",
    "from_header",
    "host_of",
    "is_private_host",
    "is_public_address",
    "join",
    "registered_domain",
    "site_of",
]

MAX_URL_LENGTH = 2083
"""Characters; longer ones are refused on discovery (the longest that search engines index)."""


def canonical(url: str) -> str:
    """The canonical form of an absolute http(s) URL.

    Raises
    ------
    UrlError
        when `url` is relative, malformed, not http(s), without a host, or carries credentials.
    """
    found = join("", url.strip())
    if found is None:
        raise UrlError(f"{url!r} is not an absolute http or https URL without credentials")
    return found


def join(base: str, href: str) -> str | None:
    """`href` as found on the page `base`, in canonical form; None when it is nothing to crawl.

    None stands for every href that leads to no page: other schemes (mailto:, javascript:, data:), malformed
    text, credentials. An empty `base` asks for an absolute `href`.
    """
    try:
        url = ada_url.join_url(base, href) if base else ada_url.normalize_url(href)
    except ValueError:
        return None
    if not url.startswith(("http://", "https://")):
        return None
    url = url.partition("#")[0]
    authority = url[url.index("//") + 2 :].partition("/")[0]
    return None if "@" in authority else url


def from_header(value: str) -> str:
    """The text of a header that is a URL, as browsers read it: its bytes (`value`, as latin-1) are UTF-8.

    ``/caf\u00c3\u00a9`` is ``/caf\u00e9``. Bytes that are no UTF-8 are asked as they came: ``/caf\u00e9`` is
    ``/caf%E9``, whatever encoding the server meant.
    """
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return "".join(char if char.isascii() else f"%{ord(char):02X}" for char in value)


def site_of(url: str) -> str:
    """scheme://host[:port] of a canonical URL: the unit of politeness and assignment."""
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def host_of(site: str) -> str:
    """The host of a site or canonical URL, without port and without the brackets of an IPv6 address."""
    authority = site.partition("//")[2].partition("/")[0]
    if authority.startswith("["):
        return authority[1 : authority.index("]")]
    return authority.partition(":")[0]


def fingerprint(url: str) -> bytes:
    """Eight bytes that stand for a canonical URL (Broder 2003 section 2: 8-byte fingerprints).

    Keys are looked up within one site, so even a site of 10^7 pages collides with a chance of 3e-6.
    """
    return xxhash.xxh3_64_digest(url.encode())


@functools.cache
def _extract() -> Callable[[str], str]:
    import tldextract  # noqa: PLC0415  0.1 s at start, and only `scope = "domain"` asks

    # suffix_list_urls=() : the bundled list, never a download at run time.
    extractor = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)

    def domain(host: str) -> str:
        return extractor(host).top_domain_under_public_suffix or host

    return domain


@functools.lru_cache(maxsize=65_536)
def registered_domain(host: str) -> str:
    """The name somebody registered (`flink.apache.org` -> `apache.org`); an address or bare name is its own."""
    return _extract()(host)


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
"""Of the IANA IPv4 Special-Purpose Address Registry (RFC 6890) and the multicast space, as of 2025. Python's own
tables (`is_global`) differ from one patch release to the next, and it is a security boundary: so this is ours."""
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
"""All that IANA has assigned as global unicast (RFC 4291, IPv6 Global Unicast Address Assignments). Site-local,
unique-local and link-local, SRv6 (5f00::/16), local-use NAT64 (64:ff9b:1::/48), what is IPv4-compatible or
IPv4-translated, and everything not assigned are outside."""
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
"""Of the IANA IPv6 Special-Purpose Address Registry what lies inside `_GLOBAL_6`."""
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
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded(ip)
        if inner is None:
            return ip in _GLOBAL_6 and not any(ip in network for network in _NOT_PUBLIC_6)
        ip = inner
    return not any(ip in network for network in _NOT_PUBLIC_4)


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
