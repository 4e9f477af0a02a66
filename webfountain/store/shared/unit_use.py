"""The claim of a process that is about to use a shared store in its time period and unit.

A process that changes the units must not do so while others use other units. Both sides write before they read: an
opening claims ``unit/NAME`` and then reads the store's description; a change writes itself to the description and then
reads the claims. So at least one of the two sees the other. The claim lasts until the ant has its own (``ant/NAME``).
"""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from typing import TYPE_CHECKING, Final

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.store.shared.claims import SharedClaims

__all__ = ["OPENING_S", "UnitUse"]

OPENING_S: Final = 30.0
"""Duration of a claim on ``unit/NAME``, s. By then an ant has claimed its own name."""


class UnitUse:
    """The claim of a process that is about to use a store in its units."""

    def __init__(self, claims: SharedClaims, *, steady: Callable[[], float] = time.monotonic) -> None:
        self.name = f"unit/{secrets.token_hex(8)}"
        self._claims = claims
        self._steady = steady
        self._until = -math.inf

    def begin(self, units: bytes, *, at: float) -> None:
        """Claim for some seconds from `at`. A later call prolongs the claim."""
        self._until = self._steady() + OPENING_S
        self._claims.claim([self.name], owner=self.name, until=at + OPENING_S, at=at, notes={self.name: units})

    def end(self) -> None:
        """Release the claim. Without this call it expires on the server."""
        if self._steady() < self._until:
            with contextlib.suppress(StoreError):
                self._claims.drop({self.name: 0.0}, owner=self.name, at=0.0)
        self._until = -math.inf
