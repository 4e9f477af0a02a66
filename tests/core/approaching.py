"""When the pages of one site reach a price, for the tests of urgencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.site_urgency import Sites

if TYPE_CHECKING:
    from webfountain.core.arrays import Ints
    from webfountain.core.site_urgency import SiteUrgency

__all__ = ["steps_until"]


def steps_until(site: SiteUrgency, pages: Ints, price: float, *, step: int) -> float:
    """The steps from `step` before which none of `pages` reaches a price, as `Sites.steps_until`."""
    wanted = np.zeros(len(site), dtype=np.bool_)
    wanted[pages] = True
    sites = Sites([site], step=step)
    return float(sites.steps_until(sites.approach(), wanted, np.array([price]))[0, 0])
