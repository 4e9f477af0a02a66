"""The end of a demonstration in words."""

from __future__ import annotations

from webfountain.lab.commands.demo import Sample, freshness_summary


def test_freshness_is_a_bar_for_each_period() -> None:
    text = freshness_summary([Sample(1, 200, 0.5), Sample(2, 210, 1.0)])
    first, *bars = text.splitlines()
    assert "100.0% of the 210 live pages" in first
    assert [bar.count("█") for bar in bars] == [20, 40]


def test_a_summary_without_a_measurement_says_so() -> None:
    assert "not measured" in freshness_summary([])
