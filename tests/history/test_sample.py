"""Many samples become one: counts add up, a state is the last one's, an estimate is a mean."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.history.sample import MAX_WORDS, OUTCOMES, HistorySample, outcome_counts, rollup

samples = st.lists(
    st.builds(
        HistorySample,
        at=st.floats(0, 1e10),
        seconds=st.floats(0, 60),
        outcomes=st.lists(st.integers(0, 100), min_size=0, max_size=len(OUTCOMES)).map(tuple),
        errors=st.dictionaries(st.sampled_from(["dns", "timeout", "cut"]), st.integers(1, 9)),
        links_new=st.integers(0, 9),
        freshness=st.none() | st.floats(0, 1),
        limits=st.dictionaries(st.sampled_from(["politeness", "nothing is due"]), st.floats(0, 60)),
    ),
    min_size=1,
    max_size=8,
)


@given(samples)
def test_counts_add_up_and_an_estimate_lies_between(found: list[HistorySample]) -> None:
    whole = rollup(found, at=0.0)
    for kind in OUTCOMES:
        assert outcome_counts(whole).get(kind, 0) == sum(outcome_counts(each).get(kind, 0) for each in found)
    assert sum(whole.errors.values()) == sum(sum(each.errors.values()) for each in found)
    known = [each.freshness for each in found if each.freshness is not None]
    assert (whole.freshness is None) == (not known)
    assert whole.freshness is None or min(known) <= whole.freshness <= max(known)


@given(samples, st.integers(0, 8))
def test_it_does_not_matter_in_how_many_steps(found: list[HistorySample], cut: int) -> None:
    parts = [part for part in (found[:cut], found[cut:]) if part]
    stepwise = rollup([rollup(part, at=0.0) for part in parts], at=0.0)
    at_once = rollup(found, at=0.0)
    assert stepwise.outcomes == at_once.outcomes
    assert stepwise.errors == at_once.errors
    assert stepwise.seconds == pytest.approx(at_once.seconds)


def test_words_of_a_hostile_web_are_bounded() -> None:
    many = HistorySample(0.0, 1.0, errors={f"error-{n}": n for n in range(1000)})
    whole = rollup([many, many], at=0.0)
    assert len(whole.errors) == MAX_WORDS
    assert sum(whole.errors.values()) == 2 * sum(range(1000))


def test_a_sample_of_an_earlier_version_is_read() -> None:
    early = msgspec.msgpack.encode([5.0, 60.0, [1, 2]])
    assert msgspec.msgpack.decode(early, type=HistorySample).pages == (1, 2)
