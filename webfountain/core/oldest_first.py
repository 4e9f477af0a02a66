"""Compute the obsolete pages at the end of each period if each bucket is crawled oldest first.

Equation (2) assumes a random choice within a bucket. Crawling the oldest first leaves fewer obsolete pages, because no
page waits long.

Source: Edwards 2001, equation (2) and Figure 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from webfountain.core.model import Array, Instance

__all__ = ["obsolete_oldest_first"]

_COHORTS: Final = 16


def obsolete_oldest_first(instance: Instance, x: Array, z: Array, *, mean_age: Array) -> Array:
    """Return the (T,) numbers of obsolete pages at the end of each period, without the never-crawled pages.

    Parameters
    ----------
    x : (T, B) pages recrawled
    z : (T,) never-crawled pages crawled
    mean_age : (B,) mean number of periods since the last crawl; ages are assumed to be evenly spread from 0 to twice
        the mean
    """
    ages = (np.arange(_COHORTS) + 0.5)[::-1] * (2.0 / _COHORTS)
    # (B, cohorts) pages of each cohort and their obsolete share, oldest cohort first; each period appends a cohort
    pages = np.concatenate([np.repeat(instance.b0[:, None] / _COHORTS, _COHORTS, axis=1), np.zeros_like(x).T], axis=1)
    obsolete = np.zeros_like(pages)
    obsolete[:, :_COHORTS] = 1.0 - (1.0 - instance.a[0])[:, None] ** (ages * mean_age[:, None])
    total = np.zeros(instance.T)
    for t in range(instance.T):
        older = np.cumsum(pages, axis=1) - pages
        pages -= np.clip(x[t][:, None] - older, 0.0, pages)
        obsolete = 1.0 - (1.0 - obsolete) * (1.0 - instance.a[t])[:, None]
        pages[:, _COHORTS + t] = x[t] + instance.p * z[t]
        obsolete[:, _COHORTS + t] = 0.0
        total[t] = (pages * obsolete).sum()
    return total
