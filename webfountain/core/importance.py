"""Importance of pages of which no link graph tells: nearer to the home page counts more."""

from __future__ import annotations

__all__ = ["importance_by_depth"]

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_SHARE = 0.5
"""Importance of a page relative to one a directory above it."""


def importance_by_depth(paths: Sequence[str]) -> npt.NDArray[np.float64]:
    """(n,) 1 for a page in the root directory, half of that for each directory below."""
    depth = [sum(bool(name) for name in path.split("?", 1)[0].split("/")[:-1]) for path in paths]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))
