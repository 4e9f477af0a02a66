"""False changes on the generated web: what is learned of noise, and what rules by hand say of it."""

from __future__ import annotations

import pytest

from webfountain.lab.false_changes import NoisyWeb, measure

EXACT = "[change]\nmin_change = 0\n"
MAIN = '[content]\ntext = "main"\n'
BY_HAND = 'ignore = [".clock", ".ad", ".inline-ad", ".rotating", ".counter", ".live", ".tags", "label"]\n'


def test_without_rules_most_reports_are_false() -> None:
    assert measure(EXACT, NoisyWeb(1)).false_share > 0.7


@pytest.mark.parametrize("content", ["", MAIN], ids=["all", "main"])
def test_after_three_visits_few_reports_are_false_and_no_long_change_is_missed(content: str) -> None:
    found = measure(content + EXACT + "learn = true\n", NoisyWeb(2))
    assert found.false_share <= 0.02
    assert found.missed_long == 0
    assert 0 < found.extra_share <= 0.02


def test_with_rules_written_by_hand_no_report_is_false_and_no_change_is_missed() -> None:
    found = measure(EXACT + BY_HAND, NoisyWeb(1))
    assert (found.false, found.missed) == (0, 0)
