"""The bucket byte: 256 classes of pages with a similar change rate, spaced evenly on a logarithmic scale.

After each settled fetch, the page's mean change interval is estimated (`change_rate`), and this module turns it into
one byte. The census, the model and the quotas count pages per byte. With `fastest` = period/96 and a period of one day,
bucket 0 is 15 minutes and bucket 255 is two years.

Source: Edwards 2001, section 2 ("at most 256 change-frequency buckets, one byte of the page's metadata").
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["BUCKETS", "RATIO", "bucket_of", "interval_of", "intervals_of", "of_every_bucket"]

BUCKETS = 256
"""Number of classes. The byte is 0 for the fastest class and 255 for the slowest."""

RATIO = (730 * 96) ** (1 / 255)
"""Ratio of the mean intervals of neighbouring buckets (about 1.0447)."""

_LN_RATIO = math.log(RATIO)
_SLOWEST_FACTOR = RATIO**255
_log = math.log


def bucket_of(interval: float, fastest: float) -> int:
    """Return the bucket byte of a mean change interval.

    The byte is clip(round(ln(interval/fastest)/ln r), 0, 255). An interval of zero or less is in the fastest class. An
    infinite interval (no change was seen and there is no prior) is in the slowest class.

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
    """Return the mean change interval, s, at the centre of a bucket. This is the inverse of `bucket_of`."""
    return float(fastest * RATIO**bucket)


def intervals_of(buckets: npt.ArrayLike, fastest: float) -> npt.NDArray[np.float64]:
    """Return the intervals, s, of an array of bucket bytes. The array may have any shape."""
    return np.asarray(fastest * RATIO ** np.asarray(buckets, dtype=np.float64))


def of_every_bucket(known: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return (256,) values, one per bucket, interpolated from the values of the buckets `known` (ascending)."""
    return np.asarray(np.interp(np.arange(BUCKETS), known, values))
