"""Figures of one collection at one time, the source of a scrape (`exposition`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.history.live import LiveSnapshot

__all__ = ["Figures"]


class Figures(NamedTuple):
    """Figures of one collection at one time."""

    collection: str
    available: bool
    at: float
    live: Sequence[LiveSnapshot] = ()
    freshness: float | None = None
    failing: int | None = None
    store_bytes: int | None = None
    repository_bytes: int | None = None
