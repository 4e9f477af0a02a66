"""The processes of ``crawl --ants N``, one per ant: they are started, signalled and ended together.

Each ant is ``webfountain crawl`` in its own process and session, so only the parent receives a Ctrl-C, and it passes
it on once. When an ant dies, the others take its sites over. When the parent dies, its ants end as after SIGTERM.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from math import inf
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

__all__ = ["ANTS_S", "PARENT", "AntProcesses", "follow_parent"]

PARENT: Final = "WEBFOUNTAIN_ANT_OF"
"""Environment variable with the process id of an ant's parent."""
ANTS_S: Final = 9.0
"""Seconds between a signal and killing the ants that still run. What they had not settled is fetched again by the next
ant with their sites.
"""
_NOW_S: Final = 1.0
"""The same after a second signal."""


def follow_parent() -> None:
    """End this process as after SIGTERM when the process that started this ant has ended."""
    parent = os.environ.get(PARENT)
    if parent is not None:
        threading.Thread(target=_follow, args=(int(parent),), daemon=True, name="webfountain-parent").start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


class AntProcesses:
    """The ants' processes; the context manager passes signals on and kills the remaining processes.

    shares : pages for each ant, None without a limit; one ant is started for each on_stop : called at the first signal
    """

    def __init__(
        self, command: Sequence[str], folder: Path, shares: Sequence[int | None], *, on_stop: Callable[[], None]
    ) -> None:
        self._command = command
        self._folder = folder
        self._shares = shares
        self._on_stop = on_stop
        self.stop_at = inf
        """Monotonic seconds of the first signal, inf before it."""
        self._ants: list[subprocess.Popen[bytes]] = []
        self._relays: list[threading.Thread] = []

    def __enter__(self) -> AntProcesses:
        """Start the ants. A signal during the start ends the started ones, and no more are started."""
        self._before = {each: signal.signal(each, self._pass_on) for each in (signal.SIGINT, signal.SIGTERM)}
        for number, share in enumerate(self._shares, start=1):
            if self.stop_at == inf:
                self._start(number, share)
        return self

    def _start(self, number: int, share: int | None) -> None:
        more = ["--report", str(self._report(number))] + ([] if share is None else ["--max-pages", str(share)])
        ant = subprocess.Popen(  # noqa: S603  ourselves
            [*self._command, *more],
            env={**os.environ, PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._ants.append(ant)
        if self.stop_at < inf:
            ant.terminate()
        relay = threading.Thread(target=_relay, args=(ant, number), daemon=True)
        relay.start()
        self._relays.append(relay)

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._kill()
        for relay in self._relays:
            relay.join(timeout=1.0)
        for ant in self._ants:
            assert ant.stderr is not None
            ant.stderr.close()

    def until_ended(self, poll_s: float) -> Iterator[None]:
        """Yield every `poll_s` seconds until all ants have ended. After a signal, kill those that end too late."""
        while living := [ant for ant in self._ants if ant.poll() is None]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                living[0].wait(poll_s)
            if time.monotonic() > self.stop_at + ANTS_S:
                self._kill()
            yield

    def _kill(self) -> None:
        for ant in self._ants:
            if ant.poll() is None:
                ant.kill()
                ant.wait()

    def reports(self) -> list[dict[str, Any]]:
        """Return the reports of the ants that wrote one."""
        files = [self._report(number) for number in range(1, len(self._ants) + 1)]
        return [json.loads(file.read_bytes()) for file in files if file.is_file()]

    def failed(self) -> list[str]:
        """Return a line for each ant that failed. An ant killed by SIGTERM had not started to crawl, because SIGTERM
        does not kill a running crawl.
        """
        well = {0, -signal.SIGTERM} if self.stop_at < inf else {0}
        return [
            f"ant {number} (process {ant.pid}) ended with status {ant.returncode}"
            for number, ant in enumerate(self._ants, start=1)
            if ant.returncode not in well
        ]

    def require_begun(self) -> None:
        """End this process with status 0 if a signal ended all ants before any had started to crawl."""
        if self.stop_at < inf and not self.failed() and not self.reports():
            sys.exit(0)

    def _report(self, number: int) -> Path:
        return self._folder / f"ant-{number}.json"

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        """At the first signal, stop the ants in order; at a second one, at once."""
        if self.stop_at == inf:
            self.stop_at = time.monotonic()
            self._on_stop()
        else:
            self.stop_at = min(self.stop_at, time.monotonic() - ANTS_S + _NOW_S)
        for ant in self._ants:
            if ant.poll() is None:
                ant.send_signal(signal.SIGTERM)


def _relay(ant: subprocess.Popen[bytes], number: int) -> None:
    """Copy the log of an ant to standard error, with its number at the start of each line."""
    assert ant.stderr is not None
    with contextlib.suppress(ValueError):
        for line in ant.stderr:
            sys.stderr.write(f"ant {number}: {line.decode(errors='replace')}")
