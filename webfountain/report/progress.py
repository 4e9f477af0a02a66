"""Progress of a running crawl: a live table on a terminal, a plain line at intervals elsewhere.

Several times a second, the caller makes a `Moment`, the state of the crawl, and shows it. Numbers have units, and
estimates are marked as estimates.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from webfountain.records import FETCHED, OutcomeKind
from webfountain.report.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from rich.table import Table
    from rich.text import Text

    from webfountain.store.answers import Statistics

__all__ = ["Moment", "ProgressDisplay", "line", "moment_of", "spell_seconds", "table"]

LINE_EVERY_S: Final = 5.0
"""Time between two lines of progress in the first minute of a crawl, in seconds."""
LATE_LINE_EVERY_S: Final = 60.0
_WINDOW_S: Final = 5.0
"""Time over which the shown rate is averaged, in seconds."""
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_BAR_WIDTH: Final = 30
_COLOURS: Final = {
    "new": "green",
    "changed": "cyan",
    "minor": "cyan",
    "gone": "yellow",
    "failed": "red",
    "never-crawled": "yellow",
    "crawled": "green",
    "refused": "yellow",
}


class Moment(msgspec.Struct, frozen=True):
    """State of a running crawl at one moment."""

    seconds: float
    """Time since the crawl began, in seconds."""
    outcomes: Mapping[str, int]
    """Number of finished fetches with each outcome."""
    pages: Mapping[str, int]
    """Number of known URLs in each state."""
    sites: int
    active_sites: int
    in_flight: int
    ants: int | None = None
    """Number of processes that crawl together; None if there is only one."""
    freshness: float | None = None
    """Estimated share of the known pages that have an up-to-date copy, 0 to 1."""
    plan: str | None = None
    """The current plan, in a few words."""
    limit: str | None = None
    """What limits the rate of fetches, in a few words."""

    @property
    def fetched(self) -> int:
        """Return the number of finished fetches. Refused pages are not counted as fetches, because they were not
        requested.
        """
        return sum(count for kind, count in self.outcomes.items() if kind in FETCHED)

    @property
    def waiting(self) -> int:
        """Return the number of URLs that wait for another attempt after a failed fetch."""
        return self.pages.get("failed", 0)


def moment_of(stored: Statistics, counts: Mapping[str, float], **more: Any) -> Moment:
    """Return the state of a crawl, from the statistics of its store and the counts of `Metrics.snapshot`. `more`
    contains the other fields of a `Moment`.
    """
    outcomes = {kind: int(counts.get(f"outcome/{kind}", 0)) for kind in get_args(OutcomeKind)}
    pages = {str(state): count for state, count in stored.pages.items()}
    return Moment(outcomes=outcomes, pages=pages, sites=stored.sites, **more)


class ProgressDisplay:
    """Progress display on `stream`: a live table on a terminal, else a line of text at intervals.

    Use the display with `with`, or call `close` at the end.
    """

    def __init__(self, stream: TextIO, *, title: str) -> None:
        from rich.console import Console  # noqa: PLC0415  50 ms, and most commands draw nothing
        from rich.live import Live  # noqa: PLC0415

        self._title = title
        self._stream = stream
        self._moments: deque[Moment] = deque()
        self._next_line = 0.0
        self._rates: deque[float] = deque(maxlen=40)
        console = Console(file=stream)
        # The last numbers stay on the screen, because people want to read them.
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        if self._live is not None:
            self._live.start()

    def show(self, moment: Moment) -> None:
        """Show the current state of the crawl."""
        self._moments.append(moment)
        while len(self._moments) > 2 and moment.seconds - self._moments[0].seconds > _WINDOW_S:
            self._moments.popleft()
        rate = self._rate()
        if self._live is not None:
            self._rates.append(rate)
            self._live.update(table(moment, title=self._title, rate=rate, rates=self._rates), refresh=True)
        elif moment.seconds >= self._next_line:
            self._next_line = moment.seconds + (LINE_EVERY_S if moment.seconds < 60 else LATE_LINE_EVERY_S)
            self._stream.write(line(moment, title=self._title, rate=rate) + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Leave the last table on the screen and release the terminal. Calling `close` again has no effect."""
        if self._live is not None:
            self._live.stop()

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _rate(self) -> float:
        first, last = self._moments[0], self._moments[-1]
        span = last.seconds - first.seconds
        return (last.fetched - first.fetched) / span if span > 0 else 0.0


def line(moment: Moment, *, title: str, rate: float) -> str:
    """Return the state of a crawl as one line of plain text."""
    parts = [
        f"{title} {spell_seconds(moment.seconds)}",
        f"{moment.fetched:,} fetched ({rate:.1f} pages/s)",
        ", ".join(f"{count:,} {_word(kind)}" for kind, count in moment.outcomes.items() if count) or "no outcome yet",
        f"{counted(sum(moment.pages.values()), 'page')} known, {moment.pages.get('never-crawled', 0):,} never crawled",
        f"{moment.active_sites:,} of {counted(moment.sites, 'site')} active",
    ]
    if moment.waiting:
        parts.append(f"{moment.waiting:,} waiting")
    if moment.freshness is not None:
        parts.append(f"about {moment.freshness:.1%} fresh")
    if moment.limit is not None:
        parts.append(f"limit: {moment.limit}")
    if moment.plan is not None:
        parts.append(moment.plan)
    return " | ".join(parts)


def table(moment: Moment, *, title: str, rate: float, rates: Sequence[float] = ()) -> Table:
    """Return the state of a crawl as a table for a terminal, with a small curve of `rates`."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Table.grid(padding=(0, 2), expand=False)
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column()
    drawn.title = f"[bold]{title}[/bold]  {spell_seconds(moment.seconds)}"
    drawn.title_justify = "left"
    fetched = Text.assemble((f"{moment.fetched:,}", "bold"), f" pages, {rate:.1f} pages/s ")
    drawn.add_row("fetched", fetched.append(_curve(rates), "blue"))
    drawn.add_row("outcomes", _counts(moment.outcomes))
    drawn.add_row("known", _counts(moment.pages))
    drawn.add_row("sites", _sites(moment))
    if moment.freshness is not None:
        drawn.add_row(
            "fresh", Text.assemble(_bar(moment.freshness), f" {moment.freshness:.1%} of the pages (estimate)")
        )
    if moment.limit is not None:
        drawn.add_row("limit", moment.limit)
    if moment.plan is not None:
        drawn.add_row("plan", moment.plan)
    return drawn


def spell_seconds(seconds: float) -> str:
    """Return a number of seconds as 1:02:03, or with days in front."""
    days, rest = divmod(int(seconds), 86_400)
    clock = f"{rest // 3600}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days} d {clock}" if days else clock


def _sites(moment: Moment) -> str:
    parts = [f"{moment.active_sites:,} active of {moment.sites:,}", f"{moment.in_flight:,} in flight"]
    if moment.ants is not None:
        parts.append(counted(moment.ants, "ant"))
    if moment.waiting:
        parts.append(f"{moment.waiting:,} waiting")
    return ", ".join(parts)


def _counts(counts: Mapping[str, int]) -> Text:
    """Return counts as coloured text such as `new 12 · same 3`, without zeros."""
    from rich.text import Text  # noqa: PLC0415

    shown = [
        Text.assemble((_word(kind), _COLOURS.get(kind, "")), f" {count:,}") for kind, count in counts.items() if count
    ]
    return Text(" · ").join(shown) if shown else Text("none yet", "dim")


def _word(kind: str) -> str:
    return kind.replace("_", " ")


def _bar(share: float) -> Text:
    from rich.text import Text  # noqa: PLC0415

    full = round(share * _BAR_WIDTH)
    return Text.assemble(("━" * full, "green"), ("━" * (_BAR_WIDTH - full), "dim"))


def _curve(rates: Sequence[float]) -> str:
    """Draw a curve of rates, one block character for each rate, with a full block for the highest rate."""
    top = max(rates, default=0.0)
    return "".join(_BLOCKS[round(rate / top * (len(_BLOCKS) - 1))] for rate in rates) if top > 0 else ""
