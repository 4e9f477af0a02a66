"""Check whether any process is crawling with a store, even if it has no work.

Place in the walk: called by commands that need a running crawl, or that must not run beside one (`now`, `forget`,
``check --repair``). An idle ant has no site, so the number of active sites does not show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.store.contract import FrontierStore

__all__ = ["has_ants"]


def has_ants(store: FrontierStore, *, at: float) -> bool:
    """Return whether an ant of a shared store is alive at a time, or has just opened the store.

    A killed ant counts until its claim expires, after at most two heartbeats.
    """
    if store.claims is None:
        return False
    return any(claim.owner and claim.until > at for kind in ("ant", "unit") for claim in store.claims.claims(kind))
