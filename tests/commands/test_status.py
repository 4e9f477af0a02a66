"""`webfountain status`: what it says of a store of which little is known."""

from __future__ import annotations

import pytest

from webfountain.commands.status import _ants, _basis


@pytest.mark.parametrize(
    ("fetches", "begin"),
    [
        (0, "estimated without a fetch since"),
        (1, "estimated from 1 fetch since"),
        (2, "estimated from 2 fetches since"),
    ],
)
def test_the_basis_of_the_fresh_share_is_said_plainly(fetches: int, begin: str) -> None:
    found = {"fetches": fetches, "since": 0.0, "failing": 0, "freshness_at": None, "crawling": False}
    assert _basis(found).startswith(begin)
    assert _basis(found).endswith("UTC; no crawl is running, so the share falls")


def test_an_ant_with_one_site_is_counted_in_the_singular() -> None:
    ant = {"sites": 1, "idle_since": None, "in_flight": 1, "addresses": 0}
    assert _ants([ant]) == "1 running with 1 site; 1 request in flight"
    assert _ants([ant, ant]) == "2 running with 1, 1 sites; 2 requests in flight"
