"""Live progress of all ants that use one store, including those on other machines.

A separate thread draws it, because a server that does not answer must not delay the end of the ants.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, get_args

from webfountain.clock import SystemClock
from webfountain.errors import StoreError
from webfountain.frontier.cluster.ant_notes import AntNote, ants_of
from webfountain.records import OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.report.progress import Moment
    from webfountain.store.contract import FrontierStore

__all__ = ["AntsDisplay"]

_REDRAW_S: Final = 1.0


class AntsDisplay:
    """The display, drawn while its `with` block runs. The work of an ant that has ended still counts."""

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
        """Draw once a second, as long as the store answers."""
        with contextlib.suppress(StoreError):
            while not self._ended.is_set():
                moment = self._moment()
                if not self._ended.is_set():
                    self._progress.show(moment)
                self._ended.wait(_REDRAW_S)

    def _moment(self) -> Moment:
        from webfountain.report.progress import Moment  # noqa: PLC0415

        claims, stored = self._opened.claims, self._opened.census.statistics()
        assert claims is not None
        living = ants_of(claims, claims.time() or SystemClock().now())
        self._notes |= living
        counts: Counter[str] = Counter()
        for note in self._notes.values():
            counts.update({name: int(many) for name, many in note.counts.items()})
        return Moment(
            seconds=time.monotonic() - self._began,
            outcomes={kind: counts[f"outcome/{kind}"] for kind in get_args(OutcomeKind) if f"outcome/{kind}" in counts},
            pages={str(state): many for state, many in stored.pages.items()},
            sites=stored.sites,
            active_sites=stored.active_sites,
            in_flight=sum(note.in_flight for note in living.values()),
            waiting=stored.pages.get("failed", 0),
            ants=len(living),
        )

    def end(self, report: Mapping[str, Any]) -> None:
        """Draw the final state, which includes what happened after the ants' last heartbeats."""
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
                waiting=report["pages"].get("failed", 0),
                ants=0,
            )
        )
