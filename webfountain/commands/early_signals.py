"""Handle signals before a crawl does so itself: the process ends with status 0, because it has not done anything yet.

Before a crawl starts, it imports Scrapy, and may start a server or wait for one. By default, a SIGTERM would kill the
process there, and its caller would take that for a failure.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["exit_on_signals"]


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """Raise SystemExit(0) in the block on SIGINT or SIGTERM, until another handler is installed for that signal."""
    before = {number: signal.signal(number, _exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is _exit:
                signal.signal(number, handler)


def _exit(_: int, __: FrameType | None) -> None:
    sys.exit(0)
