"""Instances for the tests of the model: EMT-1 as it comes with the package, and random ones of every kind."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.model import Instance, make_instance
from webfountain.lab.bucket_instances import build_instance

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

EMT1 = tomllib.loads((Path(__file__).parents[2] / "webfountain/lab/instances/emt1.toml").read_text())


def emt1(strategy: int = 1, *, version: str = "v1", periods: int = 14, buckets: int = 255) -> Instance:
    """The package's copy of EMT-1 under one of its three strategies."""
    return build_instance(EMT1, strategy=str(strategy), version=version, periods=periods, buckets=buckets)


def drawn(seed: int) -> Instance:
    """A live-looking instance: 1-20 buckets, some empty, rates of 0 and 1, costs that differ, odd capacities."""
    rng = np.random.default_rng(seed)
    T, B = int(rng.integers(1, 8)), int(rng.integers(1, 21))
    b0 = rng.lognormal(5, 3, B) * (rng.random(B) > 0.2)
    a = rng.random(B) ** 2
    a[rng.random(B) < 0.1], a[rng.random(B) < 0.1] = 0.0, 1.0
    total = float(b0.sum())
    capacities: list[Array | float] = [
        np.zeros(T),
        total / 30,
        total * 10,
        1e-3,
        rng.random(T) * total * (rng.random(T) > 0.3),
    ]
    weights = [np.ones(T), np.append(np.zeros(T - 1), 1.0), np.append(np.full(T - 1, 0.01), 1.0)]
    weight = weights[rng.integers(3)]
    return make_instance(
        a=a,
        C=capacities[rng.integers(len(capacities))],
        b0=b0,
        y0=b0 * rng.random(B),
        c=rng.lognormal(0, 1, B) if rng.random() < 0.5 else 1.0,
        d=rng.choice([0.0, 1.0, 3.0]),
        o=rng.choice([0.0, 0.01, 0.5]),
        w=rng.choice([0.0, 0.1, 1.5]),
        nconst=rng.choice([0.0, total * 0.01]),
        n0=float(rng.choice([0.0, 1.0, total * 0.1])),
        oldwt=weight[:, None],
        newwt=weight if rng.random() < 0.7 else 0.0,
        periods=T,
    )
