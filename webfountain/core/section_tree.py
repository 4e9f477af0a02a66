"""The sections of several sites as arrays, level by level, for sums towards the root and values towards the leaves.

`sections` numbers the directories of one site. Here the trees of several sites are concatenated, each with its own
root at depth 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["Level", "SectionTree"]


class Level(NamedTuple):
    """The sections of one depth; siblings are neighbours."""

    sections: Ints
    parents: Ints
    """Parent of each section."""
    families: Ints
    """The parents, without repeats."""
    begins: Ints
    """Index of the first child of each parent."""


class SectionTree:
    """Sections by number. Each parent has a lower number than its children; a root is its own parent."""

    def __init__(self, parent: Ints, depth: Ints) -> None:
        self.parent = parent
        self.depth = depth
        self.levels: list[Level] = []
        """Levels from depth 1 on."""
        for number in range(1, int(depth.max(initial=0)) + 1):
            level = np.flatnonzero(depth == number)
            level = level[np.argsort(parent[level], kind="stable")]
            parents = parent[level]
            begins = np.flatnonzero(np.diff(parents, prepend=-1))
            self.levels.append(Level(level, parents, parents[begins], begins))

    def roll_up(self, amounts: Array) -> None:
        """Add the amounts of each section, (sections, …), to those of all its ancestors, in place."""
        for level in reversed(self.levels):
            amounts[level.families] += np.add.reduceat(amounts[level.sections], level.begins, axis=0)
