"""The sections of a site: the tree of its URL directories, whose pages tend to change together.

A page belongs to the directory of its path; every directory is a section of its parent, the site the root of all.
`activity` keeps its statistics per section and lends from the parent where a section has few pages of its own.
"""

from __future__ import annotations

__all__ = ["SITE", "Sections"]

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

SITE = 0
"""The section that holds all others."""


class Sections:
    """Numbers sections as they are first met; a number never changes and a parent's is below its children's."""

    def __init__(self, *, max_depth: int = 8, most: int = 1000) -> None:
        """Deeper directories than `max_depth` count as their ancestor at that depth; 0 knows only the site.

        Of more than `most` directories (some sites give each page one) those with the fewest pages count as the one
        above. What became a section stays one.
        """
        self._max_depth = max_depth
        self._most = most
        self._fewest = 1  # pages that make a section
        self._pages: dict[str, int] = {}
        self._number = {"": SITE}
        self._parent = [SITE]
        self._depth = [0]

    def __len__(self) -> int:
        return len(self._parent)

    def sections_of(self, paths: Sequence[str]) -> list[int]:
        """Section of the URL path of each new page, all of them counted before any is placed.

        What follows the last slash, a query or a fragment is no directory.
        """
        keys = [self._directories(path) for path in paths]
        for of_page in keys:
            for key in of_page:
                self._pages[key] = self._pages.get(key, 0) + 1
        if len(self._pages) > self._most:
            self._fewest = sorted(self._pages.values(), reverse=True)[self._most] + 1
        return [self._section(of_page) for of_page in keys]

    def encode(self) -> list[object]:
        """All directories that were met, with their pages, and those that are sections, in the order of numbers."""
        return [self._pages, list(self._number)[1:], self._parent, self._depth, self._fewest]

    def decode(self, data: Sequence[Any]) -> None:
        """Go on from what `encode` told."""
        self._pages, names, self._parent, self._depth, self._fewest = data
        self._number = {name: number for number, name in enumerate(["", *names])}

    def _directories(self, path: str) -> list[str]:
        names = [name for name in path.split("?", 1)[0].split("#", 1)[0].split("/")[:-1] if name]
        return ["/" + "/".join(names[: depth + 1]) for depth in range(min(len(names), self._max_depth))]

    def _section(self, directories: list[str]) -> int:
        section = SITE
        for key in directories:
            if self._pages[key] < self._fewest:
                break
            known = self._number.get(key)
            section = self._add(key, section) if known is None else known
        return section

    def parents(self) -> npt.NDArray[np.int64]:
        """(sections,) parent of each section; the site is its own."""
        return np.array(self._parent, dtype=np.int64)

    def levels(self) -> list[npt.NDArray[np.int64]]:
        """Sections of depth 0, 1, 2, …: one array each, siblings side by side."""
        depth, parent = np.array(self._depth), np.array(self._parent)
        found = [np.flatnonzero(depth == level) for level in range(int(depth.max()) + 1)]
        return [level[np.argsort(parent[level], kind="stable")] for level in found]

    def _add(self, key: str, parent: int) -> int:
        self._number[key] = section = len(self._parent)
        self._parent.append(parent)
        self._depth.append(self._depth[parent] + 1)
        return section
