"""Load a collection's seeds into the store, count them, and log the refused ones."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.crawl.builder import FrontierSetup
    from webfountain.policy.collection import Collection

__all__ = ["load_seeds_of"]

logger = logging.getLogger(__name__)


def load_seeds_of(built: FrontierSetup, collection: Collection) -> None:
    """Load the seeds of a collection. Call it in the worker thread."""
    loaded = built.seeds(collection)
    built.metrics.inc("seeds/read", loaded.read)
    built.metrics.inc("seeds/new", loaded.new)
    for reason, (many, first) in loaded.refused.items():
        logger.warning(
            "%d seeds are refused by the collection's own rules (%s): %s",
            many,
            reason,
            first,
            extra={"event": f"judge/{reason}"},
        )
