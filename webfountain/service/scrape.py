"""Figures of a collection for a Prometheus scrape, from the answers of the Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.history.figures import Figures

if TYPE_CHECKING:
    from webfountain.api.collection import StoredCollection

__all__ = ["figures_of"]

_RECENT_S: Final = 3600.0
"""Maximum age of a sample whose disk sizes are reported, s."""


def figures_of(collection: StoredCollection, name: str) -> Figures:
    """Return the figures of a collection under a name."""
    status = collection.status()
    samples = collection.history(since=status.at - _RECENT_S)
    return Figures(
        name,
        available=True,
        at=status.at,
        live=collection.live(),
        freshness=status.freshness,
        failing=status.failing,
        store_bytes=samples[-1].store_bytes if samples else None,
        repository_bytes=samples[-1].repository_bytes if samples else None,
    )
