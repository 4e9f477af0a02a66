"""Estimate the importance of a page from its place in the site: depth, home page, length of the path.

This is used before a link graph is ranked, and as the `location` part of a policy's score.

Source: Cho 1998, section 2 (location metric).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.urls import path_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

__all__ = ["Array", "importance_by_depth", "is_home", "location"]

_SHARE: Final = 0.5
"""Importance of a page relative to a page one directory above."""

_HOME: Final = 2.0
"""Importance of a home page relative to another page of its directory."""

_HOMES: Final = frozenset({"", "index", "home", "default", "welcome"})


def importance_by_depth(paths: Sequence[str]) -> Array:
    """Return the (n,) importances by depth: 1 for a page in the root directory, half for each directory below."""
    depth = [sum(bool(name) for name in path.split("?", 1)[0].split("/")[:-1]) for path in paths]
    return np.asarray(np.power(_SHARE, np.array(depth, dtype=np.float64)))


def is_home(url: str) -> bool:
    """Return whether a canonical URL is the home page of its site."""
    return path_start(url) == len(url) - 1


def location(urls: Sequence[str]) -> Array:
    """Return the (n,) importances by URL alone: halved for each directory, doubled for the index page of a directory.

    `urls` are canonical. The importance of a page with a query is halved.

    Source: Cho 1998, section 2 (IL: fewer slashes, "home"). Deviation: all top-level domains count alike.
    """
    paths = [url[path_start(url) :] for url in urls]
    asks = np.array(["?" in path for path in paths])
    homes = np.array([path.split("?", 1)[0].rpartition("/")[2].split(".")[0] in _HOMES for path in paths])
    return importance_by_depth(paths) * np.where(homes, _HOME, 1.0) * np.where(asks, _SHARE, 1.0)
