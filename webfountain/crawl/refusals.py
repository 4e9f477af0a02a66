"""Requests of another project's spider that the ant refuses: their errback runs before they are settled.

Place in the walk: between the batch that would settle them and the worker. Robots.txt (or a private address) refuses
a leased request before it is ever handed out. Here it is taken out of the batch and goes through the engine, where a
middleware ends it as Scrapy's own for robots.txt would; when the engine is done with it, it is settled. So a crash
calls the errback again, and loses none.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from webfountain.frontier.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.work import Refusal

__all__ = ["Refusals"]

_REFUSED: Final = frozenset({"refused", "refused_by_robots"})
MOST: Final = 1000
"""Refused requests in the engine or before it: above that the worker gets no batch that could bring more."""


class Refusals:
    """Stands between a frontier and its worker; used in the loop thread. `now` is UTC seconds."""

    def __init__(self, frontier: Frontier, now: Callable[[], float]) -> None:
        self._frontier = frontier
        self._now = now
        self._waiting: deque[Refusal] = deque()
        self._in_engine = 0
        self._ended: list[Refusal] = []

    def take_work(self) -> Work | None:
        """The frontier's next batch without what is refused in it, with what has been told to its errback."""
        work = self._frontier.take_work() if len(self) <= MOST else None
        if work is not None:
            self._waiting += [each for each in work.refusals if each.kind in _REFUSED]
            work.refusals = [each for each in work.refusals if each.kind not in _REFUSED]
        if self._ended:
            work = work or Work(self._now())
            work.refusals += self._ended
            self._ended = []
        return work

    def next(self) -> Refusal | None:
        """One that the engine has to end now. `ended` must follow."""
        if not self._waiting:
            return None
        self._in_engine += 1
        return self._waiting.popleft()

    def ended(self, refusal: Refusal) -> None:
        """The engine is done with one that `next` gave: it may be settled."""
        self._in_engine -= 1
        self._ended.append(refusal)

    def give_up(self) -> None:
        """The crawl ends: what no errback was told goes back to its queue, when the store closes."""
        self._waiting.clear()

    def __len__(self) -> int:
        """How many are not done with."""
        return len(self._waiting) + self._in_engine
