"""``crawl --ants N``: N ants on this machine crawl as one, and end together with one report.

Each ant is ``webfountain crawl`` in its own process and session. Ctrl-C reaches only the parent process, which sends
one signal to each ant. When an ant dies, the other ants take over its sites. When the parent process dies, its ants end
as if they had received SIGTERM.

If the user gives no server URL, the parent process runs a private server, and restarts the server if it dies. A
separate thread draws the progress, so a server that does not answer cannot delay the end of the ants. The progress
includes ants on other machines that share the store.
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
from collections import Counter
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from webfountain.clock import SystemClock
from webfountain.commands.time_limit import call_within
from webfountain.errors import InputError, StoreError
from webfountain.frontier.cluster.ant_notes import AntNote, ants_of
from webfountain.policy.collection_file import read_collection
from webfountain.records import OutcomeKind
from webfountain.report.end_summary import added_up
from webfountain.report.troubles import troubles_of
from webfountain.scratch import Scratch
from webfountain.store.locations import folder_of, is_shared
from webfountain.store.opening import open_store, private_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from webfountain.policy.collection import Collection
    from webfountain.report.progress import Moment
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["ANTS_S", "PARENT", "AntProcesses", "AntsDisplay", "follow_parent", "run_ants", "shared_url"]

_POLL_S: Final = 0.25
_STOP_S: Final = 10.0
"""Maximum time from a signal to the end of the crawl, in seconds."""
_SERVER_S: Final = 1.0
"""Part of `_STOP_S` that is reserved for stopping a private server, in seconds."""
_HUNG_S: Final = 4.0
"""After a signal, a private server that hangs for this number of seconds is restarted, so that the ants can store their
results."""
PARENT: Final = "WEBFOUNTAIN_ANT_OF"
"""Environment variable with the process id of an ant's parent."""
ANTS_S: Final = 9.0
"""Time from a signal until the remaining ants are killed, in seconds. Other ants later fetch the pages that a killed
ant had not finished."""
_NOW_S: Final = 1.0
"""Time from a second signal until the remaining ants are killed, in seconds."""
_REDRAW_S: Final = 1.0


def shared_url(store: str) -> str:
    """Return the store URL for a crawl with many ants.

    If `store` is a folder, return the URL of a private server in this folder.

    Raises
    ------
    InputError
        if the folder contains an embedded store, which only one process can open.
    """
    folder = folder_of(store)
    if is_shared(store):
        return store
    if folder is None:
        raise InputError(
            f"--store {store!r}: several ants need a server, or a folder for a private server (valkey://FOLDER)"
        )
    if (folder / "db").is_dir():
        raise InputError(
            f"--ants: {folder} holds a store for one process; give another folder, such as --store valkey://FOLDER"
        )
    return f"valkey://{folder}"


def run_ants(
    collection: str,
    *,
    ants: int,
    store: str,
    repository: Path,
    options: Sequence[str],
    max_pages: int | None,
    show: bool,
) -> dict[str, Any]:
    """Crawl with `ants` ants until all have ended, and return their reports as one.

    Parameters
    ----------
    options : options of `webfountain crawl`, passed to each ant unchanged
    max_pages : divided among the ants

    Raises
    ------
    WebfountainError
        if the store cannot be used, or an ant failed.
    SystemExit
        with status 0, if a signal ended all ants before any had started to crawl.
    """
    tables = read_collection(collection)
    began = time.monotonic()
    with Scratch() as folder, contextlib.ExitStack() as stack:
        server = private_server(store)
        if server is not None:
            stack.enter_context(server)
        opened = stack.enter_context(contextlib.closing(_open(store, tables)))
        command = [sys.executable, "-m", "webfountain", "crawl", collection, "--store", store]
        command += ["--repository", str(repository), "--json", *options]
        assert opened.claims is not None
        on_stop = partial(_limit_end, opened.claims, None if server is None else server.kill_hung)
        processes = stack.enter_context(AntProcesses(command, folder, _shares(max_pages, ants), on_stop=on_stop))
        display = stack.enter_context(AntsDisplay(opened, title=tables.name, began=began)) if show else None
        for _ in processes.until_ended(_POLL_S):
            if server is not None:
                server.end_by(processes.stop_at + _STOP_S)
                server.revive()
        statistics, troubles = _stored_end(opened, by=processes.stop_at + _STOP_S - _SERVER_S)
        processes.require_begun()
        report = added_up(
            processes.reports(),
            statistics,
            seconds=time.monotonic() - began,
            failed=processes.failed(),
            stopped=processes.stop_at < inf,
        )
        if display is not None:
            display.end(report)
        return report | troubles


def _open(store: str, tables: Collection) -> FrontierStore:
    return open_store(
        store,
        collection=tables.name,
        period_s=tables.cycle.period_s,
        fastest_s=tables.cycle.fastest_s,
        at=SystemClock().now(),
    )


def _stored_end(opened: FrontierStore, *, by: float) -> tuple[Statistics | None, dict[str, Any]]:
    """Return the statistics of the store, and, for the report, the failed seeds and the unreachable sites. Return
    (None, {}) if the store does not answer before `by`, monotonic seconds."""

    def read() -> tuple[Statistics, dict[str, Any]]:
        return opened.census.statistics(), msgspec.to_builtins(troubles_of(opened, year=time.gmtime().tm_year))

    return read() if by == inf else call_within(by - time.monotonic(), read) or (None, {})


def _limit_end(claims: Claims, kill_hung: Callable[[float], None] | None) -> None:
    """Limit how long this process waits for a store or a private server that does not answer."""
    claims.end_within(ANTS_S)
    if kill_hung is not None:
        threading.Thread(target=kill_hung, args=(_HUNG_S,), daemon=True, name="webfountain-hung").start()


def _shares(pages: int | None, ants: int) -> list[int | None]:
    """Return how many pages each ant may fetch, without entries for ants that would get no page."""
    if pages is None:
        return [None] * ants
    least, more = divmod(pages, ants)
    return [least + (i < more) for i in range(ants) if least + (i < more)]


def follow_parent() -> None:
    """End this process, as SIGTERM would, as soon as its parent process ends."""
    parent = os.environ.get(PARENT)
    if parent is not None:
        threading.Thread(target=_follow, args=(int(parent),), daemon=True, name="webfountain-parent").start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


class AntProcesses:
    """The processes of all ants on this machine.

    While the `with` block runs, SIGINT and SIGTERM are passed on to the ants. At the end of the `with` block, the
    remaining ants are killed.

    Parameters
    ----------
    shares : maximum number of pages of each ant, None without a limit; one ant is started per entry
    on_stop : called at the first signal
    """

    def __init__(
        self, command: Sequence[str], folder: Path, shares: Sequence[int | None], *, on_stop: Callable[[], None]
    ) -> None:
        self._command = command
        self._folder = folder
        self._shares = shares
        self._on_stop = on_stop
        self.stop_at = inf
        """Time of the first signal, monotonic seconds; inf before the first signal."""
        self._ants: list[subprocess.Popen[bytes]] = []
        self._relays: list[threading.Thread] = []

    def __enter__(self) -> AntProcesses:
        """Start the ants. If a signal arrives during the start, stop the ants that have already started, and start no
        more."""
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
        """Yield None every `poll_s` seconds until all ants have ended. After a signal, kill the ants that take too
        long.
        """
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
        files = [self._report(number) for number in range(1, len(self._ants) + 1)]
        return [json.loads(file.read_bytes()) for file in files if file.is_file()]

    def failed(self) -> list[str]:
        """Return a line for each ant that failed. If SIGTERM kills an ant before it begins to crawl, the ant has not
        failed."""
        well = {0, -signal.SIGTERM} if self.stop_at < inf else {0}
        return [
            f"ant {number} (process {ant.pid}) ended with status {ant.returncode}"
            for number, ant in enumerate(self._ants, start=1)
            if ant.returncode not in well
        ]

    def require_begun(self) -> None:
        """End this process with status 0 if a signal ended all ants before any of them began to crawl."""
        if self.stop_at < inf and not self.failed() and not self.reports():
            sys.exit(0)

    def _report(self, number: int) -> Path:
        return self._folder / f"ant-{number}.json"

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        """Send SIGTERM to all ants. After the first SIGTERM, an ant stores its results and ends. After the second
        SIGTERM, an ant ends immediately."""
        if self.stop_at == inf:
            self.stop_at = time.monotonic()
            self._on_stop()
        else:
            self.stop_at = min(self.stop_at, time.monotonic() - ANTS_S + _NOW_S)
        for ant in self._ants:
            if ant.poll() is None:
                ant.send_signal(signal.SIGTERM)


def _relay(ant: subprocess.Popen[bytes], number: int) -> None:
    """Copy the log of an ant to standard error, with the ant's number at the start of each line."""
    assert ant.stderr is not None
    with contextlib.suppress(ValueError):
        for line in ant.stderr:
            sys.stderr.write(f"ant {number}: {line.decode(errors='replace')}")


class AntsDisplay:
    """A progress display for the whole crawl. The totals include the work of ants that have already ended."""

    def __init__(self, opened: FrontierStore, *, title: str, began: float) -> None:
        from webfountain.report.progress import ProgressDisplay  # noqa: PLC0415  rich costs 50 ms of start-up

        self._opened = opened
        self._progress = ProgressDisplay(sys.stderr, title=title)
        self._began = began
        self._notes: dict[str, AntNote] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True, name="webfountain-display")

    def __enter__(self) -> AntsDisplay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._progress.close()

    def _draw(self) -> None:
        with contextlib.suppress(StoreError):
            while not self._ended.is_set():
                moment = self._moment()
                if not self._ended.is_set():
                    self._progress.show(moment)
                self._ended.wait(_REDRAW_S)

    def _moment(self) -> Moment:
        from webfountain.report.progress import moment_of  # noqa: PLC0415

        claims, stored = self._opened.claims, self._opened.census.statistics()
        assert claims is not None
        living = ants_of(claims, claims.time() or SystemClock().now())
        self._notes |= living
        counts: Counter[str] = Counter()
        for note in self._notes.values():
            counts.update({name: int(many) for name, many in note.counts.items()})
        return moment_of(
            stored,
            counts,
            seconds=time.monotonic() - self._began,
            active_sites=stored.active_sites,
            in_flight=sum(note.in_flight for note in living.values()),
            ants=len(living),
        )

    def end(self, report: Mapping[str, Any]) -> None:
        """Stop the thread, and draw the numbers of the final report."""
        from webfountain.report.progress import Moment  # noqa: PLC0415

        self._ended.set()
        self._progress.show(
            Moment(
                seconds=report["seconds"],
                outcomes={kind: report[kind] for kind in get_args(OutcomeKind) if kind in report},
                pages=report["pages"],
                sites=report["sites"],
                active_sites=0,
                in_flight=0,
                ants=0,
            )
        )
