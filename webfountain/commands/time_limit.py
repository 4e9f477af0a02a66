"""Call a function with a time limit.

A crawl must end within ten seconds after a signal, although its last output needs a store that may not answer. At exit,
Python waits for all threads, even for a thread that hangs, so the exit has a time limit too.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_within", "limit_exit"]

_T = TypeVar("_T")
EXIT_S: Final = 1.0
"""Maximum time from the end of the main program to the end of the process, in seconds."""


def call_within(seconds: float, call: Callable[[], _T]) -> _T | None:
    """Return the result of `call`, or None if `call` takes too long or raises StoreError.

    `call` runs in a thread of its own. After the time limit, the thread continues, but its result is ignored. Errors of
    `call` other than StoreError are raised.
    """
    found: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:  # the caller raises it
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="webfountain-limited")
    thread.start()
    thread.join(max(seconds, 0.0))
    if failed and not isinstance(failed[0], StoreError):
        raise failed[0]
    return found[0] if found else None


def limit_exit(status: int) -> None:
    """End the process with `status` if the interpreter has not ended after `EXIT_S`. The main program calls this
    function last."""

    def end() -> None:
        time.sleep(EXIT_S)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)

    threading.Thread(target=end, daemon=True, name="webfountain-exit").start()
