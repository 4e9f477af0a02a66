"""A log of the recent steps of one process on a shared store: if the store loses steps, they are repeated from the log.

The log keeps steps as they were sent, and other work as functions to call. A full log drops its oldest entries.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["RepeatLog", "SentStep"]

MOST_BYTES: Final = 16_000_000
"""Maximum size in bytes of all steps in a log, and of all function calls in it."""
_OVERHEAD: Final = 200
"""Memory in bytes that a log entry takes besides its contents."""


class SentStep(NamedTuple):
    """A step that a shard has answered."""

    number: int
    shard: int
    step: str
    arguments: bytes

    @property
    def size(self) -> int:
        """Return how much memory this step takes in the log, in bytes."""
        return len(self.arguments) + _OVERHEAD


class _Call(NamedTuple):
    number: int
    size: int
    call: Callable[[], object]


class RepeatLog:
    """The recent steps and function calls of one process on a shared store. Only one thread may use the log at a
    time."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._steps: deque[SentStep] = deque()
        self._step_bytes = 0
        self._calls: dict[str | int, _Call] = {}
        self._call_bytes = 0

    def add(self, steps: Sequence[SentStep]) -> None:
        """Keep steps."""
        self._steps += steps
        self._step_bytes += sum(step.size for step in steps)
        while self._step_bytes > self._most:
            self._step_bytes -= self._steps.popleft().size

    def add_call(self, number: int, call: Callable[[], object], *, size: int, name: str | None = None) -> None:
        """Keep a function call of `size` bytes; it replaces an earlier call with the same name."""
        key = number if name is None else name
        self._drop_call(key)
        self._calls[key] = _Call(number, size + _OVERHEAD, call)
        self._call_bytes += size + _OVERHEAD
        while self._call_bytes > self._most:
            self._drop_call(next(iter(self._calls)))

    def take(self, lost: Mapping[int, int]) -> tuple[list[list[SentStep]], list[Callable[[], object]]]:
        """Remove and return the lost steps and function calls. `lost` contains, for each shard that has lost steps, the
        number of the last step that the shard still has.

        Each returned row has at most one step per shard, so that each shard gets its steps in order. Function calls are
        returned if they were logged after the earliest step in `lost`.
        """
        first = min(lost.values())
        rows: dict[int, list[SentStep]] = {}
        kept: deque[SentStep] = deque()
        for step in self._steps:
            if step.number > lost.get(step.shard, step.number):
                rows.setdefault(step.shard, []).append(step)
            else:
                kept.append(step)
        self._steps, self._step_bytes = kept, sum(step.size for step in kept)
        calls = {key: each for key, each in self._calls.items() if each.number > first}
        for key in calls:
            self._drop_call(key)
        return (
            [[step for step in row if step is not None] for row in itertools.zip_longest(*rows.values())],
            [each.call for each in calls.values()],
        )

    def _drop_call(self, key: str | int) -> None:
        if (gone := self._calls.pop(key, None)) is not None:
            self._call_bytes -= gone.size
