"""Which entries of the change log a stream's filter accepts."""

from __future__ import annotations

import pytest

from webfountain.records import Change
from webfountain.service.streams import ChangeFilter


@pytest.mark.parametrize("percent", range(1, 101))
def test_a_change_of_exactly_the_least_share_is_accepted_and_one_below_it_is_not(percent: int) -> None:
    """1 - .9 is less than .1 in binary numbers."""
    change = Change(1, 0.0, "https://a.example", b"", "https://a.example/", "changed", resemblance=1.0 - percent / 100)
    written = Change(
        1, 0.0, "https://a.example", b"", "https://a.example/", "changed", resemblance=(100 - percent) / 100
    )
    for each in (change, written):
        assert ChangeFilter.of("", "", "", percent).accepts(each)
        assert not ChangeFilter.of("", "", "", percent + 1).accepts(each)
