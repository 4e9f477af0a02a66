"""Forms of a site: the same pages under https, or with or without ``www.``, to which a seed redirects.

Place in the walk: used when the redirect of a seed leads out of scope. People often write one form of an address, and
the server redirects to another: then they meant that form. The judge keeps the forms that replaced a seed's site
(`Judge.admit`). The store keeps them for the next start and for other ants. A redirect from https back to http does
not count: whoever names a protected page does not want an open one. This module does not use the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.urls import fingerprint, host_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.store.contract import Board

__all__ = ["is_site_form", "keep_forms", "kept_forms"]

_WWW: Final = "www."
_SHARDS: Final = 64
"""Number of published values in which the forms are stored. So each value stays small even if all of 100,000 seeds
redirect."""
_decoder: Final = msgspec.msgpack.Decoder(dict[str, str])


def is_site_form(site: str, *, of: str) -> bool:
    """Return whether `site` is `of` under https, or with or without ``www.``."""
    if site == of or host_of(site).removeprefix(_WWW) != host_of(of).removeprefix(_WWW):
        return False
    scheme, before = site.partition("://")[0], of.partition("://")[0]
    if scheme == before:
        return _port(site) == _port(of)
    return scheme == "https"


def kept_forms(store: Board) -> dict[str, str]:
    """Return the forms in a store, each with the seed's site that it replaced. It costs one get for each of 64 keys."""
    found: dict[str, str] = {}
    for shard in range(_SHARDS):
        if (value := store.value(_name(shard))) is not None:
            found.update(_decoder.decode(value))
    return found


def keep_forms(store: Board, forms: Mapping[str, str]) -> None:
    """Add forms to those in the store. It costs one get and one put for each key that changes.

    If two ants write the same key at the same time, one of the writes is lost; each ant repeats its own write
    periodically.
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
