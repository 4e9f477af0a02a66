"""Traces and stores become spans: what a daily visitor would have seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from webfountain.core.change_rate import append
from webfountain.errors import InputError
from webfountain.lab.observations import DAY, PageSpan, observe_store, observe_trace
from webfountain.records import PageRecord

if TYPE_CHECKING:
    from pathlib import Path

Event = tuple[int, float, str, float | None]


def trace(folder: Path, events: list[Event], *, urls: tuple[str | None, ...] = ("/a", "/b", None)) -> tuple[Path, Path]:
    """Files of a trace; times in days since 2020-01-01."""
    begin = 1_577_836_800
    columns: dict[str, Any] = {
        "page": pa.array([event[0] for event in events], pa.int32()),
        "t": pa.array([begin + int(event[1] * DAY) for event in events], pa.int64()),
        "kind": pa.array([event[2] for event in events]).dictionary_encode(),
        "resemblance": pa.array([event[3] for event in events], pa.float32()),
    }
    pq.write_table(pa.table(columns), folder / "events.parquet")
    numbers = range(len(urls))
    pages = {"page": list(numbers), "path": [f"{n}.html" for n in numbers], "site": ["s" for _ in numbers]}
    pq.write_table(pa.table({**pages, "url": pa.array(urls, pa.string())}), folder / "pages.parquet")
    return folder / "events.parquet", folder / "pages.parquet"


def test_a_trace_becomes_spans_with_at_most_one_change_a_day(tmp_path: Path) -> None:
    events: list[Event] = [
        (0, 0, "A", None),
        (0, 2.1, "M", 0.5),
        (0, 2.9, "M", 0.5),
        (0, 5.5, "M", 0.5),
        (1, 3.5, "A", None),
        (1, 7.5, "D", None),
        (1, 9.5, "A", None),
        (2, 10, "A", None),
    ]
    observed = observe_trace(*trace(tmp_path, events))
    assert observed.days == 10
    assert observed.spans == [
        PageSpan("s", 0, 10, True, True, 2, (3, 6)),
        PageSpan("s", 4, 8, False, False, 0, ()),
        PageSpan("s", 10, 10, False, True, 0, ()),
        PageSpan("s", 10, 10, False, True, 0, ()),
    ]


def test_a_window_is_cut_out_of_a_trace(tmp_path: Path) -> None:
    """What happened before only decides who is there; what comes after is not seen."""
    events: list[Event] = [
        (0, 0, "A", None),
        (0, 2.5, "M", 0.5),
        (0, 12.5, "M", 0.5),
        (1, 1, "A", None),
        (1, 4, "D", None),
    ]
    files = trace(tmp_path, [*events, (2, 30, "A", None)])
    observed = observe_trace(*files, start=1_577_836_800 + 10 * DAY, days=10)
    assert observed.spans == [PageSpan("s", 0, 10, True, True, 1, (3,))]


def test_changes_below_the_threshold_did_not_happen_and_unknown_ones_did(tmp_path: Path) -> None:
    events: list[Event] = [
        (0, 0, "A", None),
        (0, 2.5, "M", 0.99),
        (0, 4.5, "M", 0.9),
        (0, 6.5, "M", None),
        (0, 9, "M", 1.0),
    ]
    files = trace(tmp_path, events)
    assert observe_trace(*files, min_change=0.05).spans[0].days == (5, 7)
    assert observe_trace(*files).spans[0].days == (3, 5, 7, 9)


def test_pages_that_are_not_served_can_be_left_out(tmp_path: Path) -> None:
    files = trace(tmp_path, [(0, 0, "A", None), (2, 1, "A", None)])
    assert len(observe_trace(*files).spans) == 2
    assert len(observe_trace(*files, served=True).spans) == 1


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_or_broken_file_is_named(tmp_path: Path, which: int) -> None:
    files = list(trace(tmp_path, [(0, 0, "A", None)]))
    files[which] = tmp_path / "absent.parquet"
    with pytest.raises(InputError, match=r"absent\.parquet: no such file"):
        observe_trace(files[0], files[1])
    files[which].write_text("no parquet at all")
    with pytest.raises(InputError, match=r"absent\.parquet: not a readable parquet file"):
        observe_trace(files[0], files[1])


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    events, pages = trace(tmp_path, [(0, 0, "A", None)])
    with pytest.raises(InputError, match=r"no column 'page'|not a readable"):
        observe_trace(tmp_path / "pages.parquet", events)
    assert pages.exists()


def test_a_start_after_the_last_event_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no event after the start"):
        observe_trace(*trace(tmp_path, [(0, 0, "A", None)]), start=2e9)


def test_the_real_traces_have_the_pages_that_their_description_says(shared_data: Path) -> None:
    """druid: 16,661 appearances (data/README.md), each the start of a span."""
    folder = shared_data / "traces"
    observed = observe_trace(folder / "druid-events.parquet", folder / "druid-pages.parquet")
    assert len(observed.spans) == 16_661
    assert sum(span.at_end for span in observed.spans) == 14_194


def record(*, state: Any = "crawled", checks: list[tuple[float, bool]], first: float = 0.0) -> PageRecord:
    history = b""
    for interval, changed in checks:
        history = append(history, interval, changed)
    last = first + sum(interval for interval, _ in checks)
    return PageRecord(
        url="https://a.org/x",
        state=state,
        checks=len(checks),
        changes=sum(changed for _, changed in checks),
        first_seen=first,
        last_crawled=last,
        history=history,
    )


def test_a_record_becomes_a_span_from_first_sight_to_last_fetch() -> None:
    page = record(checks=[(10 * DAY, False), (10 * DAY, True), (20 * DAY, False)])
    observed = observe_store([("https://a.org", page)])
    (span,) = observed.spans
    assert observed.days == 41
    assert (span.site, span.first, span.last, span.changes) == ("a.org", 0, 41, 1)
    assert span.days[0] == pytest.approx(20, abs=3)  # a history's intervals are exact to 9 %


def test_more_changes_than_the_history_holds_are_known_by_number() -> None:
    page = record(checks=[(DAY, True)] * 100)
    (span,) = observe_store([("https://a.org", page)]).spans
    assert span.changes == pytest.approx(100, abs=2)  # at most one a day, by quantised times
    assert len(span.days) <= 24


def test_a_gone_page_ends_with_its_last_fetch_and_an_accelerated_crawl_has_short_days() -> None:
    gone = record(state="gone", checks=[(5.0, False)])
    other = record(checks=[(20.0, False)])
    observed = observe_store([("https://a.org", gone), ("https://a.org", other)], day=1.0)
    assert [span.last for span in observed.spans] == [5, 21]
    assert [span.at_end for span in observed.spans] == [False, True]


def test_a_store_without_a_second_fetch_reports_nothing() -> None:
    with pytest.raises(InputError, match="nothing to analyse"):
        observe_store([("https://a.org", PageRecord(url="https://a.org/x"))])
