"""Tables of the form of EMT-1 become models; a wrong key or value is named."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from tests.core.drawn_instances import EMT1, emt1
from webfountain.errors import InputError
from webfountain.lab.bucket_instances import build_instance, strategy_names


def test_version_two_has_three_times_the_pages_in_the_outer_quarters() -> None:
    b0 = emt1(version="v2").b0
    assert b0.sum() == pytest.approx(510.0)
    assert b0[:64] == pytest.approx(3 * b0[127])
    assert b0[-64:] == pytest.approx(3 * b0[127])


def test_version_three_halves_the_change_rates() -> None:
    rate, half = (-np.log1p(-emt1(version=version).a[0]) for version in ("v1", "v3"))
    assert half == pytest.approx(rate / 2)


def test_other_periods_and_buckets_keep_pages_and_rates() -> None:
    k = emt1(3, periods=28, buckets=1000)
    assert (k.T, k.B, k.b0.sum()) == (28, 1000, pytest.approx(510.0))
    assert (k.oldwt[0, 0], k.oldwt[-1, 0], k.newwt[-1]) == (0.008, 1.0, 1.0)


def test_a_strategy_may_list_its_weights_and_a_cost_may_differ_by_bucket() -> None:
    table = deepcopy(EMT1)
    table["strategies"]["rising"] = {"weights": [1, 2, 3]}
    table["costs"]["old"] = [1.0, 2.0]
    table["costs"]["capacity"] = [3.0, 4.0, 5.0]
    k = build_instance(table, strategy="rising", periods=3, buckets=2)
    assert k.newwt.tolist() == [1, 2, 3]
    assert k.c[2].tolist() == [1, 2]
    assert k.C.tolist() == [3, 4, 5]
    assert strategy_names(table) == ["1", "2", "3", "rising"]


@pytest.mark.parametrize(
    ("section", "key", "value", "named"),
    [
        ("costs", "old", -1, r"costs.old .*-1"),
        ("costs", "old", [1.0], r"costs.old must be a list of 255 numbers, got 1"),
        ("costs", "price", 1, r"costs.price: unknown key"),
        ("costs", "capacity", "much", r"costs.capacity .*'much'"),
        ("pages", "initial_obsolete", 600, r"pages.initial_obsolete .*600"),
        ("change", "quantile", [0.0, 0.5, 0.4, 1.0], r"change.quantile must be rising"),
        ("change", "mean_lifetime_days", [0, 1, 2, 3], r"change.mean_lifetime_days must be above 0"),
        ("change", "quantile", 3, r"change.quantile .*lists"),
        ("strategies", "1", {"weights": "odd"}, r"strategies.1.weights .*'odd'"),
        ("strategies", "1", {"weights": [1.0]}, r"strategies.1.weights must be a list of 14 numbers, got 1"),
        ("strategies", "1", 5, r"strategies.1 must be a table"),
        ("discovery", "exogenous", float("nan"), r"discovery.exogenous .*nan"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(section: str, key: str, value: object, named: str) -> None:
    table = deepcopy(EMT1)
    table[section][key] = value
    with pytest.raises(InputError, match=named):
        build_instance(table, strategy="1")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"strategy": "9"}, "strategies.9 is not one of 1, 2, 3"),
        ({"strategy": "1", "version": "v4"}, "version: 'v4'"),
        ({"strategy": "1", "periods": 0}, "periods .*got 0"),
        ({"strategy": "1", "buckets": -3}, "buckets .*got -3"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        build_instance(EMT1, **arguments)  # type: ignore[arg-type]


def test_a_missing_key_or_table_is_named() -> None:
    table = deepcopy(EMT1)
    del table["costs"]["new"]
    with pytest.raises(InputError, match=r"costs.new is missing"):
        build_instance(table, strategy="1")
    del table["costs"]
    with pytest.raises(InputError, match=r"costs"):
        build_instance(table, strategy="1")
