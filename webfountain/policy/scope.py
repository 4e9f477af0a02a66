"""Scope: the sites that belong to a collection, by `collection.scope` and the seeds.

*Forms* of a site are sites with the same pages: under https instead of http, or with or without ``www.``. If a seed
redirects to another form of its site, the judge adds this form to the scope (`Judge.admit`). The store keeps the sites
that redirects added to the scope, for the next start and for other ants. If a seed redirects from https to http, the
http site is not added, because the operator asked for the encrypted site.

The *reach* of a sitemap is the set of sites whose pages it may list. The sitemap protocol (sitemaps.org) allows pages
of the sitemap's own site, and of a site whose robots.txt names the sitemap. Pages of sites outside the reach are
ignored, so that a stranger's sitemap cannot fill the queue of any site. For the reach, all forms of a site count as one
site, because a sitemap at ``www.example.org`` often lists pages of ``example.org``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.policy.url_rules import anywhere
from webfountain.urls import fingerprint, host_of, network_domain, registered_domain, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webfountain.policy.collection import Collection
    from webfountain.store.contract import Board

__all__ = ["Scope", "SitemapReach", "is_site_form", "keep_forms", "kept_forms", "scope_of"]

_WWW: Final = "www."
_SHARDS: Final = 64
"""Number of values in the store over which the added sites are spread, so that each value stays small."""
_decoder: Final = msgspec.msgpack.Decoder(dict[str, str])

_SCOPE_MEMO: Final = 65_536


def is_site_form(site: str, *, of: str) -> bool:
    """Return whether `site` is another form of the site `of`: under https, or with or without ``www.``."""
    if site == of or host_of(site).removeprefix(_WWW) != host_of(of).removeprefix(_WWW):
        return False
    scheme, before = site.partition("://")[0], of.partition("://")[0]
    if scheme == before:
        return _port(site) == _port(of)
    return scheme == "https"


def kept_forms(store: Board) -> dict[str, str]:
    """Return the sites that redirects of seeds have added to the scope, as a map from new site to replaced site."""
    found: dict[str, str] = {}
    for shard in range(_SHARDS):
        if (value := store.value(_name(shard))) is not None:
            found.update(_decoder.decode(value))
    return found


def keep_forms(store: Board, forms: Mapping[str, str]) -> None:
    """Record in the store the sites that redirects of seeds have added to the scope.

    If two ants write the same value at once, one write is lost, so each ant repeats its writes periodically.
    """
    by_shard: dict[int, dict[str, str]] = {}
    for site, seed in forms.items():
        by_shard.setdefault(fingerprint(site)[0] % _SHARDS, {})[site] = seed
    for shard, added in by_shard.items():
        value = store.value(_name(shard))
        known = {} if value is None else _decoder.decode(value)
        if not added.items() <= known.items():
            store.put_value(_name(shard), msgspec.msgpack.encode({**known, **added}))


def _name(shard: int) -> str:
    return f"site-forms/{shard}"


def _port(site: str) -> str:
    return site.partition("://")[2].rpartition("]")[2].partition(":")[2]


class Scope(NamedTuple):
    """The sites in scope. `contains` returns whether a site is in scope; `admit` adds a site to which a seed
    redirects.
    """

    contains: Callable[[str], bool]
    admit: Callable[[str], None]


def scope_of(collection: Collection) -> Scope:
    """Return the scope of a collection."""
    if collection.scope == "any":
        return Scope(anywhere, lambda _: None)
    if collection.scope == "site":
        sites = set(map(site_of, collection.seeds()))
        return Scope(sites.__contains__, sites.add)
    domain_of = network_domain if collection.network.allow_private else registered_domain
    domains = frozenset(domain_of(host_of(url)) for url in collection.seeds())
    forms: set[str] = set()
    contains = functools.lru_cache(_SCOPE_MEMO)(lambda site: domain_of(host_of(site)) in domains or site in forms)

    def admit(site: str) -> None:
        forms.add(site)
        contains.cache_clear()

    return Scope(contains, admit)


class SitemapReach:
    """The sites whose pages one sitemap may list. The sitemap is on the site `file_site`; the robots.txt of the site
    `named_by` names the sitemap.
    """

    __slots__ = ("_known", "_speaks_for")

    def __init__(self, file_site: str, *, named_by: str) -> None:
        self._speaks_for = (file_site, named_by)
        self._known = dict.fromkeys(self._speaks_for, True)  # a sitemap may name many sites, each many times

    def contains(self, site: str) -> bool:
        """Return whether the sitemap may list pages of a site."""
        found = self._known.get(site)
        if found is None:
            forms = (is_site_form(site, of=own) or is_site_form(own, of=site) for own in self._speaks_for)
            found = self._known[site] = any(forms)
        return found
