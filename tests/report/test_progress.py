"""Numbers while a crawl runs: with units, on terminals and off them."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from webfountain.records import STATES
from webfountain.report.progress import Moment, ProgressDisplay, line, moment_of, spell_seconds, table
from webfountain.store.answers import Statistics

MOMENT = Moment(
    seconds=65.0,
    outcomes={"new": 1200, "not_modified": 34, "failed": 0, "refused_by_robots": 5},
    pages={"never-crawled": 50, "crawled": 1197, "failed": 3},
    sites=7,
    active_sites=5,
    in_flight=4,
    freshness=0.9412,
    plan="strategy 3, period 2 of 14",
)


def drawn(moment: Moment, *, rates: tuple[float, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(table(moment, title="demo", rate=12.34, rates=rates))
    return console.export_text()


def test_a_line_has_every_number_with_its_unit() -> None:
    assert line(MOMENT, title="demo", rate=12.34) == (
        "demo 0:01:05 | 1,234 fetched (12.3 pages/s) | 1,200 new, 34 not modified, 5 refused by robots | "
        "1,250 pages known, 50 never crawled | 5 of 7 sites active | 3 waiting | about 94.1% fresh | "
        "strategy 3, period 2 of 14"
    )


def test_a_table_leaves_out_what_did_not_happen() -> None:
    text = drawn(msgspec.structs.replace(MOMENT, pages={"crawled": 1197, "failed": 0}))
    assert "1,234 pages, 12.3 pages/s" in text
    assert "new 1,200 · not modified 34" in text
    assert "failed" not in text
    assert "94.1% of the pages (estimate)" in text


def test_an_unknown_freshness_and_plan_are_not_mentioned() -> None:
    moment = msgspec.structs.replace(MOMENT, freshness=None, plan=None, pages={**MOMENT.pages, "failed": 0})
    for text in (drawn(moment), line(moment, title="demo", rate=0.0)):
        assert "fresh" not in text
        assert "plan" not in text
        assert "waiting" not in text


def test_the_curve_has_its_highest_rate_full() -> None:
    assert "▁▄█" in drawn(MOMENT, rates=(1.0, 4.0, 8.0))


def test_off_a_terminal_there_is_a_line_every_five_seconds() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream, title="demo") as progress:
        for second in range(12):
            progress.show(msgspec.structs.replace(MOMENT, seconds=float(second)))
    assert [text.split(" |")[0] for text in stream.getvalue().splitlines()] == [
        "demo 0:00:00",
        "demo 0:00:05",
        "demo 0:00:10",
    ]


def test_the_rate_is_that_of_the_last_seconds() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream, title="demo") as progress:
        for second in range(21):
            fetched = 1000 + 10 * max(0, second - 10)
            progress.show(msgspec.structs.replace(MOMENT, seconds=float(second), outcomes={"new": fetched}))
    assert "(10.0 pages/s)" in stream.getvalue().splitlines()[-1]
    assert "(0.0 pages/s)" in stream.getvalue().splitlines()[1]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_table_stays_when_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    with ProgressDisplay(stream, title="demo") as progress:
        progress.show(MOMENT)
        progress.show(msgspec.structs.replace(MOMENT, seconds=66.0))
    assert "0:01:06" in stream.getvalue()
    assert stream.getvalue().endswith("\n") or "\x1b[?25h" in stream.getvalue()


def test_a_moment_comes_from_the_statistics_of_the_store() -> None:
    pages = {state: number for number, state in enumerate(STATES)}
    store = Statistics(pages=pages, sites=9, active_sites=2, leased=3, immediate=0, settle_lost=0)
    counts = {"outcome/new": 4.0, "outcome/refused": 2.0, "links/seen": 9.0}
    moment = moment_of(store, counts, seconds=1.0, active_sites=2, in_flight=1)
    assert moment.fetched == 4
    assert moment.waiting == pages["failed"]
    assert moment.sites == 9


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00:00"), (3723.9, "1:02:03"), (200_000, "2 d 7:33:20")])
def test_time_spans_are_spelled(seconds: float, text: str) -> None:
    assert spell_seconds(seconds) == text
