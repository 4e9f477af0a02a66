"""Importance of pages in the simulation, where no link graph is known: nearer to the home page counts more."""

from __future__ import annotations

__all__ = ["importance_by_depth"]

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_SHARE = 0.5
"""Importance of a page relative to one a directory above it."""


def importance_by_depth(urls: Sequence[str]) -> npt.NDArray[np.float64]:
    """(n,) 1 for a page in the root directory, half of that for each directory below."""
    depth = [sum(bool(name) for name in url.split("?", 1)[0].split("/")[:-1]) for url in urls]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))
