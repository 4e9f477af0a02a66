"""How many bytes of bodies one crawl holds: those that are coming in, and those that landed and are not examined yet.

Beside `connection`, which says what it asks for and what comes; whoever gets a body gives its bytes back (`release`)
once it was examined. Without it a hundred sites with pages of 7.5 MB are 750 MB before the first of them is parsed.

**The rule.** While fewer than `OPEN_SHARE` of the budget are held, everybody reads. From then on all connections that
wait for an answer stop reading, in the middle of a body or before its head, so that TCP stops their servers. (40 kB
of gzip in one packet may be a body of 10 MB: who has read cannot be stopped any more.) When bodies are let go of they
go on, as many as there is room for: first, in the order in which they began, those whose bodies are here in part, then,
in the order in which they asked, the others; who asks meanwhile stands behind them.

**No deadlock.** Somebody reads, or a body has landed and its owner will let go of it: where neither is so, the body
that began first goes on whatever is held. It ends, well or by its time limits, and then it is the next one's turn. So
the budget is exceeded only by a body that is larger than its rest.

**Whose time.** A stopped exchange's clock stands still: the time for the whole and the least rate judge the server,
which could not send. It waits no longer than those before it need, each of which has its own limits.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

__all__ = ["BODY_BYTES", "OPEN_SHARE", "BodyBudget", "BudgetStatistics", "HeldBody"]

BODY_BYTES: Final = 256_000_000
"""A quarter of the gigabyte that all processes of a crawl may take together; the readers of pages take the most of it.
At 10 MB a page and 100 ms to read one it is two seconds of work that waits."""
OPEN_SHARE: Final = 0.875
"""The rest, 32 MB, is for what one more read brings, and for the one body that goes on when nothing else can end."""
_PIECE: Final = 1_000_000
"""What a connection that goes on is reckoned to bring: few pages are larger."""


class Incoming(Protocol):
    """An exchange that waits for an answer, or for the rest of one."""

    def pause(self) -> None:
        """Stop reading, and the clock with it."""

    def resume(self) -> None:
        """Go on reading."""


class BudgetStatistics(NamedTuple):
    """A frozen snapshot: bytes held now and at most so far, exchanges under way, those of them that are stopped,
    bodies that landed, and how often one was stopped."""

    held: int
    peak: int
    under_way: int
    paused: int
    landed: int
    pauses: int


class HeldBody:
    """One body's place in the budget; made by `BodyBudget.hold`. `release` by whoever is done with the body."""

    __slots__ = ("_budget", "incoming", "paused", "size")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0
        self.incoming: Incoming | None = None
        """Who brings it, while it is under way."""
        self.paused = False

    def ask(self, incoming: Incoming) -> None:
        """It was asked for. Again, where the connection was closed before the answer."""
        self._budget.ask(self, incoming)

    def grow(self, size: int) -> None:
        """So many bytes of it are here now, and more are to come."""
        self._budget.grow(self, size)

    def land(self, size: int) -> None:
        """It is here, all of it."""
        self._budget.land(self, size)

    def release(self) -> None:
        """Nobody holds it any more, or it will not come. A second call has no effect."""
        self._budget.release(self)


class BodyBudget:
    """At most `most` bytes of bodies at once. Used in the loop thread; all downloads of a crawl share one.

    Invariant: a body is in `_asked` until its first bytes are here, then in `_coming` until all or none of it is.
    Invariant: while one of them is paused, another is not, or a body has landed.
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
        """A place for a body that is about to be asked for."""
        return HeldBody(self)

    def statistics(self) -> BudgetStatistics:
        """What is held."""
        under_way = len(self._asked) + len(self._coming)
        return BudgetStatistics(self._held, self._peak, under_way, self._paused, self._landed, self._pauses)

    def ask(self, body: HeldBody, incoming: Incoming) -> None:
        """See `HeldBody.ask`."""
        body.incoming = incoming
        self._asked[body] = None
        if self._paused or self._held >= self._open_until:
            self._pause(body)

    def grow(self, body: HeldBody, size: int) -> None:
        """See `HeldBody.grow`."""
        if body in self._asked:
            del self._asked[body]
            self._coming[body] = None
        self._count(body, size)
        if self._held >= self._open_until:
            self._close()

    def land(self, body: HeldBody, size: int) -> None:
        """See `HeldBody.land`."""
        self._leave(body)
        self._count(body, size)
        self._landed += size > 0
        if self._held >= self._open_until:
            self._close()
        else:
            self._go_on()

    def release(self, body: HeldBody) -> None:
        """See `HeldBody.release`."""
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
        """It is under way no more; its connection may serve again."""
        assert body.incoming is not None
        if body.paused:
            self._resume(body)
        self._asked.pop(body, None)
        self._coming.pop(body, None)
        body.incoming = None

    def _running(self) -> int:
        return len(self._asked) + len(self._coming) - self._paused

    def _close(self) -> None:
        """Stop all but the one that has to go on, if any."""
        if not self._landed and self._running() == 1:
            return
        for body in (*self._coming, *self._asked):
            if not body.paused:
                self._pause(body)
        self._go_on()

    def _go_on(self) -> None:
        """Let go on those for whom there is room; the first of them always, when nothing else can end."""
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
