"""Calls with a time limit, for information that a command would like to print at its end but must not wait for.

A crawl ends within ten seconds after a signal. Its last output needs the store, which may not answer. The interpreter's
exit waits for all threads, even for one that waits for the store, so the exit has a time limit too.
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
"""Time for the interpreter's exit, s. Threads that still wait for a name server or a store are then abandoned."""


def call_within(seconds: float, call: Callable[[], _T]) -> _T | None:
    """Return the result of `call`, or None if it takes longer or the store does not answer.

    The call runs in a thread, which is abandoned at the time limit. Errors other than the store's are raised.
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
    """End the process with `status` if the interpreter has not ended after `EXIT_S`. Call it last in the process."""

    def end() -> None:
        time.sleep(EXIT_S)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)

    threading.Thread(target=end, daemon=True, name="webfountain-exit").start()
