"""A crawl while it runs: moving numbers on a terminal, a plain line now and then elsewhere.

Whoever runs the crawl takes a `Moment` of it a few times a second and shows it here. Numbers have units, an
estimate says that it is one, and nothing is drawn that did not happen. It reads no clock and starts no thread.

The readable end of a crawl: what was found, what changed, how fresh the copy is, where the pages lie. Made from the
document that `--report` writes (DESIGN.md section 7) and, for the demonstration, from measurements against the
generated web's own truth. Text for people; programs read the document.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import msgspec

from webfountain.records import FETCHED, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO

    from rich.table import Table
    from rich.text import Text

    from webfountain.frontier.progress import FrontierStatistics

__all__ = [
    "Moment",
    "ProgressDisplay",
    "Sample",
    "freshness_summary",
    "line",
    "moment_of",
    "places",
    "spell_seconds",
    "summary",
    "table",
]

LINE_EVERY_S: Final = 5.0
"""Seconds between plain lines where the output is no terminal, in the first minute; later LATE_LINE_EVERY_S."""
LATE_LINE_EVERY_S: Final = 60.0
_WINDOW_S: Final = 5.0
"""The rate shown is that of the last so many seconds."""
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
    """What is known of a running crawl at one moment."""

    seconds: float
    """Since the crawl began."""
    outcomes: Mapping[str, int]
    """Settled fetches by outcome; their sum is `fetched`."""
    pages: Mapping[str, int]
    """Known URLs by state."""
    sites: int
    active_sites: int
    in_flight: int
    waiting: int
    """URLs that were asked and gave no copy yet; each has a time of its next try."""
    ants: int | None = None
    """Processes that crawl together; None for one that crawls alone."""
    freshness: float | None = None
    """Estimated share of the known pages whose copy is as they are now, 0 to 1."""
    plan: str | None = None
    """The plan in force, in a few words."""

    @property
    def fetched(self) -> int:
        """Settled fetches; a refusal asked nothing."""
        return sum(count for kind, count in self.outcomes.items() if kind in FETCHED)


def moment_of(
    statistics: FrontierStatistics,
    counts: Mapping[str, float],
    *,
    seconds: float,
    freshness: float | None = None,
    plan: str | None = None,
) -> Moment:
    """A moment from the frontier's snapshot and the counts of `Metrics.snapshot`."""
    outcomes = {kind: int(counts.get(f"outcome/{kind}", 0)) for kind in get_args(OutcomeKind)}
    return Moment(
        seconds=seconds,
        outcomes=outcomes,
        pages={str(state): count for state, count in statistics.store.pages.items()},
        sites=statistics.store.sites,
        active_sites=statistics.active_sites,
        in_flight=statistics.in_flight,
        waiting=statistics.store.pages.get("failed", 0),
        freshness=freshness,
        plan=plan,
    )


class ProgressDisplay:
    """Shows moments on `stream`: a live table on a terminal, else a line now and then.

    A context manager; without `with`, call `close`.
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
        # Kept on the screen when it ends: the last numbers are the ones that people want to read.
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        if self._live is not None:
            self._live.start()

    def show(self, moment: Moment) -> None:
        """Draw a moment, the newest so far."""
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
        """Leave the last picture as it is and give the terminal back. A second call has no effect."""
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
    """A moment as one line of plain text."""
    parts = [
        f"{title} {spell_seconds(moment.seconds)}",
        f"{moment.fetched:,} fetched ({rate:.1f} pages/s)",
        ", ".join(f"{count:,} {_word(kind)}" for kind, count in moment.outcomes.items() if count) or "no outcome yet",
        f"{sum(moment.pages.values()):,} pages known, {moment.pages.get('never-crawled', 0):,} never crawled",
        f"{moment.active_sites:,} of {moment.sites:,} sites active",
    ]
    if moment.waiting:
        parts.append(f"{moment.waiting:,} waiting")
    if moment.freshness is not None:
        parts.append(f"about {moment.freshness:.1%} fresh")
    if moment.plan is not None:
        parts.append(moment.plan)
    return " | ".join(parts)


def table(moment: Moment, *, title: str, rate: float, rates: Sequence[float] = ()) -> Table:
    """A moment as a table for a terminal; `rates` are those of the last moments, drawn as a small curve."""
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
    if moment.plan is not None:
        drawn.add_row("plan", moment.plan)
    return drawn


def spell_seconds(seconds: float) -> str:
    """1:02:03 from a number of seconds, days in front where there are any."""
    days, rest = divmod(int(seconds), 86_400)
    clock = f"{rest // 3600}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days} d {clock}" if days else clock


def _sites(moment: Moment) -> str:
    parts = [f"{moment.active_sites:,} active of {moment.sites:,}", f"{moment.in_flight:,} in flight"]
    if moment.ants is not None:
        parts.append(f"{moment.ants:,} ants")
    if moment.waiting:
        parts.append(f"{moment.waiting:,} waiting")
    return ", ".join(parts)


def _counts(counts: Mapping[str, int]) -> Text:
    """`new 12 · same 3`, coloured; what is zero is left out."""
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
    """One block character per rate, the highest full."""
    top = max(rates, default=0.0)
    return "".join(_BLOCKS[round(rate / top * (len(_BLOCKS) - 1))] for rate in rates) if top > 0 else ""


_FOUND: Final = ("new", "changed", "minor", "same", "not_modified", "redirected", "gone", "failed")
_REASONS: Final = {
    "finished": "all is asked",
    "idle": "nothing is left to do",
    "max_pages": "--max-pages is reached",
    "max_seconds": "--max-seconds are over",
    "shutdown": "stopped by a signal",
}
_BAR: Final = 40


class Sample(NamedTuple):
    """How fresh the copy was at one moment, by the server's own truth."""

    period: int
    """Time periods since the crawl began."""
    pages: int
    """Pages that existed then."""
    fresh: float
    """Share of them whose newest copy had the bytes that the server would have sent."""


def summary(report: Mapping[str, Any]) -> str:
    """What a crawl found, from its report document; lines of text."""
    reason = report["finish_reason"]
    pages, seconds = report["pages_fetched"], report["seconds"]
    rate = pages / seconds if seconds else 0.0
    cpu = 1000 * report["cpu_seconds"] / pages if pages else 0.0
    status = ", ".join(f"{code} {count:,}x" for code, count in sorted(report["by_status"].items()))
    lines = {
        "ended": f"{_REASONS.get(reason, reason)}, after {spell_seconds(seconds)}",
        "fetched": f"{pages:,} pages of {report['sites']:,} sites, {rate:.1f} pages/s, {cpu:.1f} ms of CPU a page",
        "found": _outcomes(report, _FOUND) or "nothing",
        "answers": status or "none",
        "links": f"{report['links_seen']:,} seen, {report['urls_discovered']:,} new URLs among them, "
        f"{report['links_out_of_scope']:,} out of scope",
        "refused": f"{report['refused_by_robots']:,} by robots.txt" if report["refused_by_robots"] else "",
        "waiting": _waiting(report["waiting"], idle=reason == "idle"),
        "cost": f"{report['peak_rss_bytes'] / 1e6:.0f} MB of memory at most, {report['cpu_seconds']:.1f} s of CPU",
    }
    return "\n".join(f"  {name:<9}{text}" for name, text in lines.items() if text)


def freshness_summary(samples: Sequence[Sample]) -> str:
    """The measured freshness, a bar for each sample."""
    if not samples:
        return "  not measured: the crawl ended before the first period did"
    last = samples[-1]
    lines = [f"  {last.fresh:.1%} of the {last.pages:,} pages that exist now are held exactly as the server has them"]
    for sample in samples:
        full = round(sample.fresh * _BAR)
        lines.append(f"  period {sample.period:>3}  {'█' * full}{'·' * (_BAR - full)} {sample.fresh:6.1%}")
    return "\n".join(lines)


def places(*, store: str, repository: Path, example: str | None) -> str:
    """Where the pages lie, and the commands to look at them; `example` is the URL of one page."""
    option = f"--store {store}"
    commands = [
        (f"webfountain status {option}", "counts, rate, freshness"),
        (f"webfountain pages {option}", "every known URL"),
        (f"webfountain texts --jsonl {option}", "the text, for an index"),
    ]
    if example is not None:
        commands.append((f"webfountain cat {example} {option}", "one page"))
    width = max(len(command) for command, _ in commands)
    lines = [f"  {'store':<9}{store}", f"  {'copies':<9}{repository} (WARC files)"]
    return "\n".join([*lines, *(f"  {command:<{width}}  # {what}" for command, what in commands)])


def _waiting(urls: int, *, idle: bool) -> str:
    """Never-crawled URLs: of an idle crawl, those of dead hosts and unreachable robots.txt."""
    why = "that cannot be asked now (a dead host, an unreachable robots.txt)" if idle else "not asked yet"
    return f"{urls:,} known URLs {why}" if urls else ""


def _outcomes(report: Mapping[str, Any], kinds: Iterable[str]) -> str:
    return ", ".join(f"{report[kind]:,} {kind.replace('_', ' ')}" for kind in kinds if report[kind])
