"""The open batch: events of the loop thread write into it until it goes to the worker thread.

Place in the walk: between the events of the loop thread (a landing, a visit, a heartbeat) and the next batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.clock import Clock

__all__ = ["OpenBatch"]


class OpenBatch:
    """The batch that is being gathered. `clock` gives the time of its events."""

    def __init__(self, clock: Clock) -> None:
        self.now: Callable[[], float] = clock.now
        """Function that returns the clock's time, UTC seconds."""
        self._batch = Batch(clock.now())

    def gather(self) -> Batch:
        """Return the batch into which events write now."""
        self._batch.at = self.now()
        return self._batch

    def send(self) -> Batch:
        """Return the gathered batch, which goes to the worker, and begin the next one."""
        sent, self._batch = self._batch, Batch(self._batch.at)
        return sent
