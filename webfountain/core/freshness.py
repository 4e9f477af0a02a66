"""How fresh a collection is believed to be, from its census alone: the figure of `status` and of the progress line.

Pages of a bucket are taken to be evenly aged, since each lane is served oldest first, and to change as a Poisson
process with the bucket's mean interval. Pure arithmetic without numpy: a command that only counts starts at once.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 2 (freshness).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BucketAges", "fresh_share", "freshness"]


class BucketAges(Protocol):
    """Crawled pages of a bucket, and the sum of the times at which they were fetched last, UTC seconds."""

    @property
    def pages(self) -> int: ...

    @property
    def sum_last_crawled(self) -> float: ...


def freshness(census: Mapping[int, BucketAges], *, never_crawled: int, at: float, fastest_s: float) -> float | None:
    """Estimated share of the known live pages whose copy is as they are at `at`; None when none is known.

    Parameters
    ----------
    census : bucket byte to its pages
    never_crawled : known pages without a copy, which are not fresh
    fastest_s : mean change interval of bucket 0, s: the unit of the bytes
    """
    known = never_crawled + sum(row.pages for row in census.values())
    fresh = sum(
        row.pages * fresh_share(at - row.sum_last_crawled / row.pages, bucket, fastest_s=fastest_s)
        for bucket, row in census.items()
        if row.pages
    )
    return fresh / known if known else None


def fresh_share(mean_age: float, bucket: int, *, fastest_s: float) -> float:
    """Expected fresh share of a bucket with ages even from 0 to twice `mean_age`, s: (1 - e^-2x)/2x, x = mean_age/D."""
    # `core.buckets` needs numpy, 0.1 s at start; this one line of it does not (a test holds them together).
    interval = fastest_s * (730 * 96) ** (bucket / 255)
    twice = 2.0 * max(0.0, mean_age) / interval
    return -math.expm1(-twice) / twice if twice > 1e-9 else 1.0
