"""crawl --ants N: start N ants on this machine, show them as one crawl, end them together, add up what they report.

Each ant is ``webfountain crawl`` in a process and a session of its own, so that a Ctrl-C is this process's to
pass on, once. Without a server's URL this process also owns the private server in the crawl's folder, and starts it
again where it dies. An ant that dies is left to the others, which take its sites over; one whose parent dies ends by
itself, as by SIGTERM.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from webfountain.clock import SystemClock
from webfountain.errors import InputError, StoreError
from webfountain.frontier.colony import AntNote, ants_of
from webfountain.policy.files import read_collection
from webfountain.records import OutcomeKind
from webfountain.store import Scratch, folder_of, is_shared, open_store, private_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from webfountain.report.progress import Moment
    from webfountain.store.contract import Claims, FrontierStore, Statistics

__all__ = ["PARENT", "added_up", "follow_parent", "run_ants", "shared_url", "write_whole"]

PARENT: Final = "WEBFOUNTAIN_ANT_OF"
"""Environment variable by which an ant knows the process whose end is its own."""
_LOOK_S: Final = 0.25
_SHOW_S: Final = 1.0
_STOP_S: Final = 10.0
"""From a signal to the end."""
_ANTS_S: Final = 9.0
"""Ants that were told to end have so long of that; one that hangs is killed then: what it had not settled is asked
again by the next that has its sites. The rest is the server's."""
_HUNG_S: Final = 4.0
"""A server of our own that does not answer for so long then hangs, and is started anew, in time for a good end."""
_PARTS: Final = (
    "seconds",
    "startup_seconds",
    "finish_reason",
    "waiting",
    "pages",
    "sites",
    "url_cache_hit_rate",
)
"""What of a report is not the sum of the ants'."""


def shared_url(store: str) -> str:
    """The store of a crawl of many ants: a server's, or a private one in the folder that an embedded store would have.

    Raises
    ------
    InputError
        when an embedded store lies there, which is one process's alone.
    """
    folder = folder_of(store)
    if is_shared(store):
        return store
    if folder is None:
        raise InputError(f"--store {store!r}: many ants need a server's store, or a folder for one of their own")
    if (folder / "db").is_dir():
        raise InputError(
            f"--ants: {folder} holds a store for one process; give another folder, as --store valkey://FOLDER"
        )
    return f"valkey://{folder}"


def follow_parent() -> None:
    """End as by SIGTERM when the process that started this ant is gone."""
    parent = os.environ.get(PARENT)
    if parent is not None:
        threading.Thread(target=_follow, args=(int(parent),), daemon=True, name="webfountain-parent").start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


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
    """Crawl with so many ants until all have ended; their report as one.

    Parameters
    ----------
    options : of `webfountain crawl`, handed to each ant as they are
    max_pages : divided among the ants

    Raises
    ------
    WebfountainError
        when the store cannot be used, or an ant failed.
    """
    tables = read_collection(collection)
    began = time.monotonic()
    with Scratch() as folder, contextlib.ExitStack() as stack:
        server = private_server(store)
        if server is not None:
            stack.enter_context(server)
        opened = stack.enter_context(
            contextlib.closing(
                open_store(
                    store,
                    collection=tables.name,
                    period_s=tables.cycle.period_s,
                    fastest_s=tables.cycle.fastest_s,
                    at=SystemClock().now(),
                )
            )
        )
        command = [sys.executable, "-m", "webfountain", "crawl", collection, "--store", store]
        command += ["--repository", str(repository), "--json", *options]
        shares = [None] * ants if max_pages is None else _shares(max_pages, ants)
        assert opened.claims is not None
        troop = _Troop(
            command, folder, shares, told=partial(_end, opened.claims, None if server is None else server.kill_hung)
        )
        stack.enter_context(troop)
        picture = stack.enter_context(_Picture(opened, title=tables.name)) if show else None
        while troop.is_alive():
            troop.wait(_LOOK_S)
            troop.cut_late()
            if server is not None:
                server.end_by(troop.told_at + _STOP_S)
                server.revive()
            if picture is not None:
                picture.show(time.monotonic() - began)
        report = added_up(
            troop.reports(),
            opened.statistics(),
            seconds=time.monotonic() - began,
            failed=troop.failed(),
            stopped=troop.told_at < inf,
        )
        if picture is not None:
            picture.end(report)
        return report


def _end(claims: Claims, kill_hung: Callable[[float], None] | None) -> None:
    """All are told to end: nothing may hold them up for long, not a server of our own either."""
    claims.end_within(_ANTS_S)
    if kill_hung is not None:
        threading.Thread(target=kill_hung, args=(_HUNG_S,), daemon=True, name="webfountain-hung").start()


def _shares(pages: int, ants: int) -> list[int | None]:
    least, more = divmod(pages, ants)
    return [least + (i < more) for i in range(ants) if least + (i < more)]


class _Troop:
    """The ants' processes. A context manager that ends what is left of them."""

    def __init__(
        self, command: Sequence[str], folder: Path, shares: Sequence[int | None], *, told: Callable[[], None]
    ) -> None:
        """`told` is called when somebody says that all should end."""
        self._folder = folder
        self._told = told
        self.told_at = inf
        """When somebody first said that all should end, monotonic seconds; inf: nobody has."""
        self._ants: list[subprocess.Popen[bytes]] = []
        self._relays: list[threading.Thread] = []
        environment = {**os.environ, PARENT: str(os.getpid())}
        for number, share in enumerate(shares, start=1):
            more = ["--report", str(self._report(number))] + ([] if share is None else ["--max-pages", str(share)])
            ant = subprocess.Popen(  # noqa: S603  ourselves
                [*command, *more],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._ants.append(ant)
            relay = threading.Thread(target=_relay, args=(ant, number), daemon=True)
            relay.start()
            self._relays.append(relay)

    def __enter__(self) -> _Troop:
        self._before = {each: signal.signal(each, self._pass_on) for each in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        for ant in self._ants:
            if ant.poll() is None:
                ant.kill()
                ant.wait()
        for relay in self._relays:
            relay.join(timeout=1.0)
        for ant in self._ants:
            assert ant.stderr is not None
            ant.stderr.close()

    def is_alive(self) -> bool:
        """Whether any ant is."""
        return any(ant.poll() is None for ant in self._ants)

    def wait(self, seconds: float) -> None:
        """Until an ant that lives has ended, or a while."""
        living = next((ant for ant in self._ants if ant.poll() is None), None)
        if living is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                living.wait(seconds)

    def cut_late(self) -> None:
        """Kill the ants that have not ended in time since they were told to."""
        if time.monotonic() > self.told_at + _ANTS_S:
            for ant in self._ants:
                if ant.poll() is None:
                    ant.kill()
                    ant.wait()

    def reports(self) -> list[dict[str, Any]]:
        """What the ants report that ended well enough to do so."""
        files = [self._report(number) for number in range(1, len(self._ants) + 1)]
        return [json.loads(file.read_bytes()) for file in files if file.is_file()]

    def failed(self) -> list[str]:
        """How the ants ended that did not end well."""
        return [
            f"ant {number} (process {ant.pid}) ended with status {ant.returncode}"
            for number, ant in enumerate(self._ants, start=1)
            if ant.returncode
        ]

    def _report(self, number: int) -> Path:
        return self._folder / f"ant-{number}.json"

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        """The first signal stops the ants in good order, a second at once."""
        self.told_at = min(self.told_at, time.monotonic())
        self._told()
        for ant in self._ants:
            if ant.poll() is None:
                ant.send_signal(signal.SIGTERM)


def _relay(ant: subprocess.Popen[bytes], number: int) -> None:
    """What an ant says of itself, line by line, with its number."""
    assert ant.stderr is not None
    with contextlib.suppress(ValueError):
        for line in ant.stderr:
            sys.stderr.write(f"ant {number}: {line.decode(errors='replace')}")


def write_whole(file: Path, report: Mapping[str, Any]) -> None:
    """Write a report, whole or not at all: a reader may wait for the file to appear."""
    draft = file.with_name(file.name + ".tmp")
    draft.write_text(json.dumps(report, indent=2) + "\n")
    draft.rename(file)


class _Picture:
    """The live display of all ants that use the store, those of other machines too."""

    def __init__(self, opened: FrontierStore, *, title: str) -> None:
        from webfountain.report.progress import ProgressDisplay  # noqa: PLC0415  rich costs 50 ms of start-up

        self._opened = opened
        self._progress = ProgressDisplay(sys.stderr, title=title)
        self._notes: dict[str, AntNote] = {}
        self._next = 0.0

    def __enter__(self) -> _Picture:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()

    def show(self, seconds: float) -> None:
        """Draw how far all have come; what an ant that is gone had done still counts."""
        if seconds < self._next:
            return
        self._next = seconds + _SHOW_S
        assert self._opened.claims is not None
        living = ants_of(self._opened.claims, SystemClock().now())
        self._notes |= living
        self._progress.show(_moment(self._notes, living, self._opened.statistics(), seconds))

    def end(self, report: Mapping[str, Any]) -> None:
        """Draw how it ended: the ants' last notes are a heartbeat old, and what came after them is in their reports."""
        outcomes = {kind: report[kind] for kind in get_args(OutcomeKind) if kind in report}
        stored = self._opened.statistics()
        moment = _moment({}, {}, stored, report["seconds"])
        self._progress.show(msgspec.structs.replace(moment, outcomes=outcomes))


def _moment(notes: Mapping[str, AntNote], living: Mapping[str, AntNote], stored: Statistics, seconds: float) -> Moment:
    from webfountain.report.progress import Moment  # noqa: PLC0415

    outcomes: dict[str, int] = {}
    for note in notes.values():
        for name, many in note.counts.items():
            if name.startswith("outcome/"):
                kind = name.removeprefix("outcome/")
                outcomes[kind] = outcomes.get(kind, 0) + int(many)
    return Moment(
        seconds=seconds,
        outcomes=outcomes,
        pages={str(state): many for state, many in stored.pages.items()},
        sites=stored.sites,
        active_sites=stored.active_sites,
        in_flight=sum(note.in_flight for note in living.values()),
        waiting=stored.pages.get("failed", 0),
        ants=len(living),
    )


def added_up(
    reports: Sequence[Mapping[str, Any]], stored: Statistics, *, seconds: float, failed: Sequence[str], stopped: bool
) -> dict[str, Any]:
    """The report of all ants as one: counts are summed, states are the store's at the end.

    Raises
    ------
    StoreError
        when no ant has reported anything.
    """
    from webfountain.core.url_cache import hit_rate  # noqa: PLC0415  numpy costs 0.1 s of start-up

    if not reports:
        raise StoreError("; ".join(failed) or "no ant has reported anything")
    total: dict[str, Any] = {}
    for name, value in reports[0].items():
        if name in _PARTS:
            continue
        total[name] = dict(_summed(name, reports)) if isinstance(value, dict) else sum(each[name] for each in reports)
    reasons = {each["finish_reason"] for each in reports}
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = time.process_time()
    return {
        **total,
        "url_cache_hit_rate": hit_rate(
            total["duplicates_by_cache"], total["urls_discovered"] + total["duplicates_by_store"]
        ),
        "waiting": stored.pages["never-crawled"] + stored.immediate,
        "pages": dict(stored.pages),
        "sites": stored.sites,
        "seconds": seconds,
        "cpu_seconds": own + children.ru_utime + children.ru_stime,
        "startup_seconds": min(each["startup_seconds"] for each in reports),
        "finish_reason": "shutdown" if stopped else reasons.pop() if len(reasons) == 1 else "finished",
        "ants": len(reports) + len(failed),
        "ants_failed": list(failed),
    }


def _summed(name: str, reports: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    keys = sorted({key for each in reports for key in each[name]})
    return ((key, sum(each[name].get(key, 0) for each in reports)) for key in keys)
