"""Measure the load of this process's CPU core, from heartbeat to heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BUSY", "FREE", "CoreLoad"]

BUSY: Final = 0.7
"""An ant is overloaded if it used more than this share of a core since its last heartbeat."""
FREE: Final = 0.3
"""An ant has spare time if it used less than this share of a core."""


class CoreLoad:
    """CPU seconds per second of this process, between the last two measurements."""

    def __init__(self, steady: Callable[[], float], cpu: Callable[[], float]) -> None:
        self._steady = steady
        self._cpu = cpu
        self._measured = (steady(), cpu())
        self.share = 1.0

    def measure(self) -> None:
        """Measure the load since the last call."""
        (steady, cpu), self._measured = self._measured, (self._steady(), self._cpu())
        if (seconds := self._measured[0] - steady) > 0.0:
            self.share = (self._measured[1] - cpu) / seconds
