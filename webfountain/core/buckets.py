"""The bucket byte: 256 classes of pages by change rate, evenly spaced on a logarithmic scale.

With a period of one day and `fastest` = period/96, bucket 0 stands for 15 minutes, bucket 255 for two years.

Source: Edwards 2001, section 2 ("at most 256 change-frequency buckets, one byte of the page's metadata").
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["BUCKETS", "RATIO", "bucket_of", "interval_of", "intervals_of", "of_every_bucket"]

BUCKETS = 256
"""Number of buckets; the pages of bucket 0 change fastest, those of bucket 255 slowest."""

RATIO = (730 * 96) ** (1 / 255)
"""Ratio of the mean intervals of neighbouring buckets (about 1.0447)."""

_LN_RATIO = math.log(RATIO)
_SLOWEST_FACTOR = RATIO**255
_log = math.log


def bucket_of(interval: float, fastest: float) -> int:
    """Return the bucket byte of a mean change interval.

    The byte is clip(round(ln(interval/fastest)/ln RATIO), 0, 255).

    Parameters
    ----------
    interval : mean time between changes, s
    fastest : mean interval of bucket 0, s, above 0
    """
    relative = interval / fastest
    if relative <= 1.0:
        return 0
    if relative >= _SLOWEST_FACTOR:
        return 255
    return round(_log(relative) / _LN_RATIO)


def interval_of(bucket: int, fastest: float) -> float:
    """Return the mean change interval, s, at the centre of a bucket."""
    return float(fastest * RATIO**bucket)


def intervals_of(buckets: npt.ArrayLike, fastest: float) -> npt.NDArray[np.float64]:
    """Return the intervals, s, of an array of bucket bytes."""
    return np.asarray(fastest * RATIO ** np.asarray(buckets, dtype=np.float64))


def of_every_bucket(known: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return (256,) values, one per bucket, interpolated from the values of the `known` buckets (ascending)."""
    return np.asarray(np.interp(np.arange(BUCKETS), known, values))
