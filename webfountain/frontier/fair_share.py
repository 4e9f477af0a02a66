"""Balance the sites between ants: each ant has the mean number of sites, within a quarter.

Place in the walk: used when an ant takes sites (`orders.site_supply`) and after each heartbeat. Sites move with their
address, so an address with many sites limits the balance. This module does not choose the sites that move.
"""

from __future__ import annotations

from math import ceil
from typing import Final

__all__ = ["most_sites", "surplus"]

UNEVEN: Final = 0.25
"""Share of the mean by which an ant may have more or fewer sites, plus a site or two."""
FEW: Final = 2


def most_sites(mean: float, fewest: int) -> int:
    """Return the maximum number of sites of an ant. If another ant has too few, the maximum is the mean."""
    return ceil(mean) if _is_short(mean, fewest) else int(mean * (1.0 + UNEVEN)) + FEW


def surplus(mine: int, mean: float, fewest: int) -> int:
    """Return how many of its sites an ant should give up. `fewest` is the smallest number of sites of an ant."""
    if mine > mean * (1.0 + UNEVEN) + FEW:
        return mine - int(mean)
    if _is_short(mean, fewest):
        return max(mine - ceil(mean), 0)
    return 0


def _is_short(mean: float, fewest: int) -> bool:
    """Return whether an ant has so few sites that the others must give some of theirs, even if none has too many."""
    return fewest < mean * (1.0 - UNEVEN) - 0.5
