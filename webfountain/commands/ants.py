"""``crawl --ants N``: N ants on this machine crawl as one, and end together with one report.

If no URL of a server is given, this process also owns the private server in the crawl's folder, and restarts it when
it dies. `ant_processes` starts the processes, `ants_display` draws the terminal, `report.summary` makes the
report.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.clock import SystemClock
from webfountain.commands.ant_processes import ANTS_S, AntProcesses
from webfountain.commands.ants_display import AntsDisplay
from webfountain.commands.time_limit import call_within
from webfountain.errors import InputError
from webfountain.policy.collection_file import read_collection
from webfountain.private_files import draft_of
from webfountain.report.summary import added_up
from webfountain.report.troubles import troubles_of
from webfountain.scratch import Scratch
from webfountain.store.locations import folder_of, is_shared
from webfountain.store.opening import open_store, private_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.store.answers import Statistics
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["run_ants", "shared_url", "write_whole"]

_POLL_S: Final = 0.25
_STOP_S: Final = 10.0
"""Seconds between a signal and the end."""
_SERVER_S: Final = 1.0
"""The part of `_STOP_S` that is reserved for stopping a private server."""
_HUNG_S: Final = 4.0
"""Seconds after a signal after which a private server that does not answer counts as hanging. It is killed and
restarted early enough for the ants to end in order.
"""


def shared_url(store: str) -> str:
    """Return the store of a crawl with many ants: that of a server, or of a private server in the given folder.

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
            f"--store {store!r}: many ants need a store on a server, or a folder for a server of their own"
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
    options : of `webfountain crawl`, passed to each ant unchanged
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
    """Return the counts of the store and its problems; none if it does not answer before `by` (monotonic seconds)."""

    def read() -> tuple[Statistics, dict[str, Any]]:
        return opened.census.statistics(), msgspec.to_builtins(troubles_of(opened, year=time.gmtime().tm_year))

    return read() if by == inf else call_within(by - time.monotonic(), read) or (None, {})


def _limit_end(claims: Claims, kill_hung: Callable[[float], None] | None) -> None:
    """Limit the time for the store and a private server, once all ants were told to stop."""
    claims.end_within(ANTS_S)
    if kill_hung is not None:
        threading.Thread(target=kill_hung, args=(_HUNG_S,), daemon=True, name="webfountain-hung").start()


def _shares(pages: int | None, ants: int) -> list[int | None]:
    """Return how many pages each ant may fetch; an ant that would get none is left out."""
    if pages is None:
        return [None] * ants
    least, more = divmod(pages, ants)
    return [least + (i < more) for i in range(ants) if least + (i < more)]


def write_whole(file: Path, report: Mapping[str, Any]) -> None:
    """Write a report completely or not at all, because a reader may wait for the file to appear."""
    with draft_of(file) as draft:
        draft.write_text(json.dumps(report, indent=2) + "\n")
