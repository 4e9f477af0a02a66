"""Check that all ants of a store use the same policy file. A difference is logged once.

Place in the walk: beside the heartbeat. Each ant reports a digest of its file, and the counting ant compares them. It
does not know which file is the right one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import xxhash

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection

__all__ = ["PolicyFiles", "digest_of"]

logger = logging.getLogger(__name__)

BEATS: Final = 2
"""Number of heartbeats for which a difference must last. An edit reaches the ants within seconds of each other, which
does not count.
"""


def digest_of(collection: Collection) -> str:
    """Return a digest of a policy file; "" for a collection without a file."""
    return xxhash.xxh3_64_hexdigest(collection.text.encode()) if collection.text else ""


class PolicyFiles:
    """The state of the comparison on the counting ant."""

    def __init__(self) -> None:
        self._beats = 0

    def compare(self, many: int) -> None:
        """Log once that the ants have `many` different files, after this was so for `BEATS` heartbeats."""
        self._beats = self._beats + 1 if many > 1 else 0
        if self._beats == BEATS:
            logger.warning(
                "The ants of this store use %d different policy files. Each page is fetched by the rules of the ant "
                "that holds its site. Give all ants the same file",
                many,
            )
