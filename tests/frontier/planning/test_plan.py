"""The plan in the store: what is written is read, what another version wrote is refused in words."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.plans import DAY, hand_made
from webfountain.core.phases import Phases
from webfountain.errors import StoreVersion
from webfountain.frontier.planning.plan import decode_plan, encode_plan

phases = Phases.running(np.linspace(1e-7, 1e-5, 256), start=-5.0)


@given(st.lists(st.floats(0, 2), min_size=1, max_size=5), st.floats(-1e9, 1e9))
def test_a_plan_comes_back_as_it_was_with_its_clocks(gains: list[float], start: float) -> None:
    clocks = phases.planned(np.outer(gains, np.ones(256)), start=start, period=DAY)
    plan = hand_made(clocks, start=start)
    again = decode_plan(encode_plan(plan))
    assert again == plan
    read = again.clocks()
    for name in ("times", "values", "before", "after"):
        assert np.array_equal(getattr(read, name), getattr(clocks, name)), name


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"\xa1\xff", encode_plan(hand_made(phases))[:-9], msgspec.msgpack.encode({"start": 1.0}),
     msgspec.msgpack.encode(["a", "list"])],
)  # fmt: skip
def test_what_another_version_wrote_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(StoreVersion, match="another version"):
        decode_plan(data)


def test_periods_run_from_the_start_and_the_last_one_goes_on() -> None:
    plan = hand_made(phases, start=10.0)
    assert (plan.periods, plan.end) == (2, 10.0 + 2 * DAY)
    assert [plan.period_at(t) for t in (0.0, 10.0, 10.0 + DAY, 10.0 + 9 * DAY)] == [0, 0, 1, 1]


@pytest.mark.parametrize(("days", "fetches"), [(0.0, 0.0), (0.5, 7.5), (1.0, 15.0), (1.5, 25.0), (2.0, 35.0), (3, 55)])
def test_planned_fetches_add_up_over_the_periods(days: float, fetches: float) -> None:
    assert hand_made(phases).fetches_until(days * DAY) == pytest.approx(fetches)


def test_the_weight_is_the_plan_s_while_pages_wait_and_new_pages_go_first_where_none_are_left() -> None:
    assert hand_made(phases).weights_at(0.0) == pytest.approx((1 / 3, 2 / 3))
    assert hand_made(phases, waiting=(1.0, 50.0)).weights_at(0.0) == (1.0, 0.0)
    assert hand_made(phases).weights_at(1.5 * DAY) == (0.0, 1.0)
