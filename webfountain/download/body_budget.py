"""Limit the memory for the bodies of a crawl. A body counts from its first byte until it has been examined.

The receiver of a body must call `release` after examining the body.

**Rule.** All connections read while less than `OPEN_SHARE` of the budget is used. Above `OPEN_SHARE`, no connection
reads, and TCP makes the servers stop sending. When bodies are released, as many paused connections resume as the budget
has room for. Connections in the middle of a body resume first.

**No deadlock.** At any time, some connection reads, or some complete body waits for its `release`. If all connections
are paused and no body is complete, the connection whose body began first resumes, even above the budget.

**Time.** While a connection is paused, the time limits of its exchange do not run.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

__all__ = ["BODY_BYTES", "OPEN_SHARE", "BodyBudget", "BudgetStatistics", "HeldBody"]

BODY_BYTES: Final = 256_000_000
"""Memory for all bodies of a crawl, in bytes: about a quarter of the memory that its processes may use."""
OPEN_SHARE: Final = 0.875
"""All connections read until this share of the budget is used. The rest of the budget is for bytes that are already on
their way, and for one body that may exceed the budget.
"""
_PIECE: Final = 1_000_000
"""A paused connection reads again only if the budget has room for this many bytes."""


class IncomingBody(Protocol):
    """An exchange that waits for a response, or receives one."""

    def pause(self) -> None:
        """Stop reading, and pause the clock of the exchange."""

    def resume(self) -> None:
        """Resume reading, and resume the clock of the exchange."""


class BudgetStatistics(NamedTuple):
    """Counts of the bytes and bodies in the budget, for the stats. `held` is the number of bytes in memory, `peak` the
    largest such number so far, and `landed` the number of complete bodies.
    """

    held: int
    peak: int
    under_way: int
    paused: int
    landed: int
    pauses: int


class HeldBody:
    """The entry of one body in the budget, made by `BodyBudget.hold`. Call `release` when the body is no longer
    used.
    """

    __slots__ = ("_budget", "incoming", "paused", "size")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0
        self.incoming: IncomingBody | None = None
        """The exchange that receives the body; None before and after the transfer."""
        self.paused = False

    def ask(self, incoming: IncomingBody) -> None:
        """Record that the request was sent, for the first time or once more."""
        self._budget.ask(self, incoming)

    def grow(self, size: int) -> None:
        """Record that `size` bytes of the body have been received so far."""
        self._budget.grow(self, size)

    def land(self, size: int) -> None:
        """Record that the body is complete and has `size` bytes."""
        self._budget.land(self, size)

    def release(self) -> None:
        """Free the bytes of a body that is no longer used or has failed. A second call has no effect."""
        self._budget.release(self)


class BodyBudget:
    """A memory limit of `most` bytes for all bodies of a crawl together. Only the loop thread uses the budget.

    Invariant: a body is in `_asked` before its first bytes, then in `_coming` until it is complete or has failed.
    Invariant: while an exchange is paused, another exchange reads, or some body is complete.
    """

    def __init__(self, most: int = BODY_BYTES) -> None:
        self._open_until = int(OPEN_SHARE * most)
        self._asked: dict[HeldBody, None] = {}
        self._coming: dict[HeldBody, None] = {}
        self._held = 0
        self._peak = 0
        self._paused = 0
        self._landed = 0
        self._pauses = 0

    def hold(self) -> HeldBody:
        """Return an entry for a body that is about to be requested."""
        return HeldBody(self)

    def statistics(self) -> BudgetStatistics:
        under_way = len(self._asked) + len(self._coming)
        return BudgetStatistics(self._held, self._peak, under_way, self._paused, self._landed, self._pauses)

    def ask(self, body: HeldBody, incoming: IncomingBody) -> None:
        body.incoming = incoming
        self._asked[body] = None
        if self._paused or self._held >= self._open_until:
            self._pause(body)

    def grow(self, body: HeldBody, size: int) -> None:
        if body in self._asked:
            del self._asked[body]
            self._coming[body] = None
        self._count(body, size)
        if self._held >= self._open_until:
            self._close()

    def land(self, body: HeldBody, size: int) -> None:
        self._leave(body)
        self._count(body, size)
        self._landed += size > 0
        if self._held >= self._open_until:
            self._close()
        else:
            self._go_on()

    def release(self, body: HeldBody) -> None:
        if body.incoming is not None:
            self._leave(body)
        else:
            self._landed -= body.size > 0
        self._count(body, 0)
        self._go_on()

    def _count(self, body: HeldBody, size: int) -> None:
        self._held += size - body.size
        body.size = size
        self._peak = max(self._peak, self._held)

    def _leave(self, body: HeldBody) -> None:
        """Remove the entry of a body whose exchange ended."""
        assert body.incoming is not None
        if body.paused:
            self._resume(body)
        self._asked.pop(body, None)
        self._coming.pop(body, None)
        body.incoming = None

    def _running(self) -> int:
        return len(self._asked) + len(self._coming) - self._paused

    def _close(self) -> None:
        """Pause all exchanges, unless only one is running and no complete body waits for its release."""
        if not self._landed and self._running() == 1:
            return
        for body in (*self._coming, *self._asked):
            if not body.paused:
                self._pause(body)
        self._go_on()

    def _go_on(self) -> None:
        """Resume as many exchanges as there is room for. If no exchange is running and no complete body waits for its
        release, resume one exchange in any case.
        """
        if not self._paused:
            return
        running = self._running()
        room = self._open_until - self._held - running * _PIECE
        if room <= 0 and (running or self._landed):
            return
        for body in (*self._coming, *self._asked):
            if body.paused:
                self._resume(body)
                room -= _PIECE
                if room <= 0:
                    return

    def _pause(self, body: HeldBody) -> None:
        assert body.incoming is not None
        body.paused = True
        self._paused += 1
        self._pauses += 1
        body.incoming.pause()

    def _resume(self, body: HeldBody) -> None:
        assert body.incoming is not None
        body.paused = False
        self._paused -= 1
        body.incoming.resume()
