"""The bucket byte: 256 classes of pages with a like change rate, spaced evenly in the logarithm.

Every settled fetch turns the page's estimated mean change interval into one byte; the census, the model and the
quotas count pages per byte. This file knows nothing of how the interval was estimated (`change_rate`).
With `fastest` = period/96 and a period of one day, bucket 0 is 15 minutes and bucket 255 two years.

Source: Edwards 2001, section 2 ("at most 256 change-frequency buckets, one byte of the page's metadata").
"""

from __future__ import annotations

__all__ = ["BUCKETS", "RATIO", "bucket_of", "buckets_of", "interval_of", "intervals_of", "of_every_bucket"]

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

BUCKETS = 256
"""Number of classes; the byte runs from 0, the fastest, to 255."""

RATIO = (730 * 96) ** (1 / 255)
"""Mean intervals of neighbouring buckets differ by this factor (about 1.0447)."""

_LN_RATIO = math.log(RATIO)
_SLOWEST_FACTOR = RATIO**255
_log = math.log


def bucket_of(interval: float, fastest: float) -> int:
    """Bucket byte of a mean change interval; both in the same unit of time.

    clip(round(ln(interval/fastest)/ln r), 0, 255). An interval of zero or less is the fastest class, an infinite one
    (never seen to change, no prior) the slowest.

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
    """Mean change interval, s, at the centre of a bucket: the inverse of `bucket_of`."""
    return float(fastest * RATIO**bucket)


def buckets_of(intervals: npt.ArrayLike, fastest: float) -> npt.NDArray[np.uint8]:
    """`bucket_of` for an array of intervals, s, of any shape."""
    with np.errstate(divide="ignore"):
        classes = np.rint(np.log(np.maximum(np.asarray(intervals, dtype=np.float64) / fastest, 0.0)) / _LN_RATIO)
    return np.clip(classes, 0, BUCKETS - 1).astype(np.uint8)


def intervals_of(buckets: npt.ArrayLike, fastest: float) -> npt.NDArray[np.float64]:
    """`interval_of` for an array of bucket bytes, of any shape; s."""
    return np.asarray(fastest * RATIO ** np.asarray(buckets, dtype=np.float64))


def of_every_bucket(known: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(256,) values of all buckets from those of the `known`, ascending ones: another lies between its neighbours."""
    return np.asarray(np.interp(np.arange(BUCKETS), known, values))
