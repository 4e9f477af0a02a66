"""The sections of a site: the tree of its directories. Pages of one directory tend to change together.

A page belongs to the directory of its path. Each directory is a subsection of its parent, and the site is the root. A
section with few pages uses the statistics of its parent.

`SectionTree` adds up values from the leaves towards the root. One tree contains several sites, each with a root at
depth 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.core.arrays import Array, Ints


__all__ = ["SITE", "Level", "SectionTree", "Sections", "run_begins"]

SITE = 0
"""Number of the root section."""
_COUNTED: Final = 20
"""Largest number of directories with counted pages, divided by the largest number of sections."""


class Sections:
    """The sections of one site, numbered in the order in which they were found. The number of a section never changes,
    and a parent has a smaller number than its children.
    """

    def __init__(self, *, max_depth: int = 8, most: int = 1000) -> None:
        """Set the limits of the tree. A directory below `max_depth` counts as its ancestor at that depth. If
        `max_depth` is 0, a site is one section.

        If there are more than `most` directories, the directories with the fewest pages belong to their parent's
        section.
        """
        self._max_depth = max_depth
        self._most = most
        self._fewest = 1  # least number of pages that make a directory a section
        self._pages: dict[str, int] = {}
        self._number = {"": SITE}
        self._parent = [SITE]
        self._depth = [0]

    def __len__(self) -> int:
        return len(self._parent)

    def sections_of(self, paths: Sequence[str]) -> list[int]:
        """Add new pages by their URL paths, and return the section of each page.

        Everything after the last slash of the path is ignored.
        """
        of_parent: dict[str, list[str]] = {}  # ancestors of each directory, computed once for all its pages
        keys = []
        for path in paths:
            parent = path.split("?", 1)[0].split("#", 1)[0].rpartition("/")[0]
            if (found := of_parent.get(parent)) is None:
                found = of_parent[parent] = self._directories(parent)
            keys.append(found)
        for of_page in keys:
            for key in of_page:
                self._pages[key] = self._pages.get(key, 0) + 1
        if len(self._pages) > self._most:
            self._fewest = sorted(self._pages.values(), reverse=True)[self._most] + 1
        sections = [self._section(of_page) for of_page in keys]
        if len(self._pages) > _COUNTED * self._most:
            self._forget()
        return sections

    def _forget(self) -> None:
        least = sorted(self._pages.values(), reverse=True)[_COUNTED * self._most // 2]
        self._pages = {key: pages for key, pages in self._pages.items() if pages > least or key in self._number}

    def encode(self) -> bytes:
        """Serialise the counted directories and the sections, in the order of their numbers."""
        return msgspec.msgpack.encode([self._pages, list(self._number)[1:], self._parent, self._depth, self._fewest])

    @classmethod
    def decode(cls, data: bytes | memoryview) -> Sections:
        """Restore the result of `encode`, with the default limits."""
        sections = cls()
        sections._pages, names, sections._parent, sections._depth, sections._fewest = msgspec.msgpack.decode(data)
        sections._number = {name: number for number, name in enumerate(["", *names])}
        return sections

    def _directories(self, parent: str) -> list[str]:
        names = [name for name in parent.split("/") if name]
        return ["/" + "/".join(names[: depth + 1]) for depth in range(min(len(names), self._max_depth))]

    def _section(self, directories: list[str]) -> int:
        section = SITE
        for key in directories:
            if self._pages[key] < self._fewest:
                break
            known = self._number.get(key)
            section = self._add(key, section) if known is None else known
        return section

    def names(self) -> list[str]:
        """Return the directory of each section by number; "" for the site itself."""
        return list(self._number)

    def parents(self) -> list[int]:
        """Return the parent of each section. The site is its own parent."""
        return self._parent

    def _add(self, key: str, parent: int) -> int:
        self._number[key] = section = len(self._parent)
        self._parent.append(parent)
        self._depth.append(self._depth[parent] + 1)
        return section


def run_begins(values: Ints) -> Ints:
    """Return the first position of each run of equal values."""
    begins = np.ones(len(values), dtype=np.bool_)  # `np.diff` with `prepend` takes four times as long
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return np.asarray(begins.nonzero()[0])


class Level(NamedTuple):
    """The sections at one depth, siblings next to each other."""

    sections: Ints
    parents: Ints
    families: Ints
    """The parents in `parents`, each listed once."""
    begins: Ints
    """Position of each parent's first child."""


class SectionTree:
    """A tree of numbered sections. A parent has a lower number than its children; a root is its own parent."""

    def __init__(self, parent: Ints, depth: Ints) -> None:
        self.parent = parent
        self.depth = depth
        self.levels: list[Level] = []
        """The levels of the tree, beginning at depth 1."""
        for number in range(1, int(depth.max(initial=0)) + 1):
            level = np.flatnonzero(depth == number)
            level = level[np.argsort(parent[level], kind="stable")]
            parents = parent[level]
            begins = run_begins(parents)
            self.levels.append(Level(level, parents, parents[begins], begins))

    def roll_up(self, amounts: Array) -> None:
        """Add the amounts (sections, …) of each section to its ancestors, in place."""
        for level in reversed(self.levels):
            amounts[level.families] += np.add.reduceat(amounts[level.sections], level.begins, axis=0)
