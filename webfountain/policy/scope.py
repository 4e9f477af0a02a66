"""Scope: the sites that belong to a collection, by `collection.scope` and its seeds.

The judge checks the site of each candidate. A seed that redirects to another form of its site (`site_forms`) adds that
form to the scope.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.policy.url_rules import anywhere
from webfountain.urls import host_of, network_domain, registered_domain, site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.policy.collection import Collection

__all__ = ["Scope", "scope_of"]

_SCOPE_MEMO: Final = 65_536


class Scope(NamedTuple):
    """The sites in scope: `contains` checks a site; `admit` adds the form of a site to which a seed redirects."""

    contains: Callable[[str], bool]
    admit: Callable[[str], None]


def scope_of(collection: Collection) -> Scope:
    """Return the scope of a collection. The seeds are read once."""
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
