"""Charts: round ticks, labels that differ, gaps."""

from __future__ import annotations

import re

import pytest

from webfountain.service.pages.charts import Series, bars, lines


def labels(chart: object) -> list[str]:
    return re.findall(r'<text class="label"[^>]*>([^<]*)</text>', str(chart))


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (831, ["0", "200", "400", "600", "800", "1k"]),
        (3, ["0", "1", "2", "3"]),
        (0.5, ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        (7.6e6, ["0", "2M", "4M", "6M", "8M"]),
        (1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_ticks_are_round_and_cover_the_values(most: float, ticks: list[str]) -> None:
    assert labels(lines("t", [0.0, 600.0], [Series("a", [0.0, most])]))[: len(ticks)] == ticks
    assert labels(bars("t", [0.0, 600.0], [Series("a", [most, 0.0])], step=60.0))[: len(ticks)] == ticks


@pytest.mark.parametrize(
    ("values", "ticks"), [([0.42, 0.949], ["40%", "60%", "80%", "100%"]), ([1.0, 1.0], ["99%", "100%"])]
)
def test_shares_have_ticks_in_percent_up_to_one_hundred(values: list[float], ticks: list[str]) -> None:
    found = labels(lines("t", [0.0, 600.0], [Series("a", values)], as_percent=True))[:-3]
    assert (found[0], found[-1]) == (ticks[0], ticks[-1])
    assert set(ticks) <= set(found)
    assert len(set(found)) == len(found)


def test_the_labels_of_a_short_span_differ() -> None:
    assert labels(lines("t", [0.0, 60.0], [Series("a", [1.0, 2.0])]))[-3:] == ["00:00:00", "00:00:30", "00:01:00"]
    assert labels(lines("t", [0.0, 7200.0], [Series("a", [1.0, 2.0])]))[-3:] == ["00:00", "01:00", "02:00"]


def test_an_unknown_value_is_a_gap_a_value_alone_a_dot_and_a_flat_line_has_a_height() -> None:
    chart = str(lines("t", [0.0, 1.0, 2.0, 3.0], [Series("a", [0.0, None, 0.0, 0.0])]))
    assert (chart.count("<circle"), chart.count("<polyline")) == (1, 1)
    assert "nan" not in chart
    assert not lines("t", [0.0], [Series("a", [1.0])])
