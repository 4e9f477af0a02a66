"""URLs as the crawler sees them: canonical form, site, fingerprint, registered domain.

Canonical form is the store's key: parsed by the WHATWG rules (ada-url), fragment dropped, nothing else.
Query sorting, session ids, index.html, trailing slashes and ``www.`` are left alone: two URLs that a server
may answer differently are two pages. URLs with a user name or password are not crawled: they are secrets.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

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
