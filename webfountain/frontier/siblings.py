"""Siblings: pages of a directory change together, so a found change makes its neighbours due, and scouts look for it.

Real pages are not independent: a release or a new template changes a directory or a whole site. So each change that is
found makes `REACH` more pages due, nearest first: of the same directory, then of the directory above and so on;
within each the longest unfetched. In a burst each of them brings more, like a chain reaction, until all that the
burst can have struck were fetched; after a lone change it dies out within REACH fetches. A page fetched after its
directory's reaction began is left alone, so no page is fetched twice for one burst.

Pages that were fetched together come due together, and until then nobody looks at their directory. So each small
directory is to be looked at evenly: n pages that are due every I seconds each, one every I/n. When none was for
PATIENCE times that, the one fetched longest ago is due: a scout. It costs no fetch more, only another order.

Place in the walk (DESIGN 4): verdict -> **here** -> lane ADVANCED of the store. Only what this process fetched is known
here, at most `pages` of them; it reads no clock and touches no store.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["REACH", "Siblings"]

REACH: Final = 4
"""Pages made due by a found change: a reaction lives while more than one in four of the struck section changed."""
_DEEPEST: Final = 6
"""Directories above a page that are looked at; deeper ones count as their ancestor."""
_PAGES: Final = 50_000
PATIENCE: Final = 1.5
_SMALL, _LARGE = 3, 64
"""Pages of a section that scouts look after: fewer tell little of each other, more are fetched evenly anyhow."""


class _Section:
    """The pages of a directory, with or without those below it, by the time of their last fetch."""

    __slots__ = ("began", "fetched", "newest", "rate", "watched")

    def __init__(self) -> None:
        self.fetched: OrderedDict[bytes, float] = OrderedDict()  # oldest fetch first
        self.began = -inf  # when the newest reaction began
        self.newest = -inf
        self.rate = 0.0  # fetches per second that its pages are due for
        self.watched = False  # whether it is among the sections that scouts look after

    def scout_at(self) -> float:
        """When it will not have been looked at for too long."""
        return self.newest + PATIENCE / self.rate if self.rate > 0 else inf


class _Site:
    """What is known of a site's pages: in which sections each is, nearest first, and its fetches per second."""

    __slots__ = ("home", "sections")

    def __init__(self) -> None:
        self.sections: dict[str, _Section] = {}
        self.home: dict[bytes, tuple[list[str], float]] = {}

    def fetched(self, key: bytes, names: list[str], at: float, rate: float) -> None:
        self.forget(key)
        self.home[key] = (names, rate)
        for name in names:
            section = self.sections.setdefault(name, _Section())
            section.fetched[key] = section.newest = at
            section.rate += rate

    def forget(self, key: bytes) -> None:
        names, rate = self.home.pop(key, ((), 0.0))
        for name in names:
            section = self.sections[name]
            del section.fetched[key]
            section.rate = section.rate - rate if section.fetched else 0.0

    def struck(self, names: list[str], since: float, at: float) -> Iterator[bytes]:
        """Pages that may have changed with one that was found changed, nearest first, then oldest fetch."""
        for name in names:
            section = self.sections[name]
            if since >= section.began:  # the change is younger than the last reaction: a new one
                section.began = at
            for key, fetched in section.fetched.items():
                if fetched >= section.began:
                    break
                yield key


class Siblings:
    """Hears of every check and tells which pages it makes due. Bounded: the site heard of longest ago is forgotten."""

    def __init__(self, *, reach: int = REACH, pages: int = _PAGES) -> None:
        self._reach = reach
        self._most = pages
        self._known = 0
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._scouts: list[tuple[float, str, str]] = []  # when to look at a section again, at the earliest

    def hear(
        self, site: str, url: str, key: bytes, *, at: float, since: float | None, changed: bool, every: float
    ) -> list[bytes]:
        """A page was fetched well `at`; keys to make due now.

        `since` is its fetch before, None for a first copy; `every` the interval at which it is due, s.
        """
        known = self._sites.setdefault(site, _Site())
        self._sites.move_to_end(site)
        self._known -= len(known.home)
        names = _sections_of(url)
        known.fetched(key, names, at, 1.0 / every)
        self._watch(site, known, names)
        struck: list[bytes] = []
        if changed and since is not None:
            for each in known.struck(names, since, at):
                if each not in struck:
                    struck.append(each)
                if len(struck) == self._reach:
                    break
        for each in struck:  # until it was fetched it is in no section: a page is made due once
            known.forget(each)
        self._known += len(known.home)
        self._shrink()
        return struck

    def scouts(self, at: float) -> list[tuple[str, bytes]]:
        """Site and key of the pages to make due because their section was not looked at for too long."""
        found = []
        while self._scouts and self._scouts[0][0] <= at:
            _, site, name = heapq.heappop(self._scouts)
            section = self._sites[site].sections[name] if site in self._sites else _Section()
            if not _SMALL <= len(section.fetched) <= _LARGE:
                section.watched = False
                continue
            if section.scout_at() <= at:
                key = next(iter(section.fetched))
                found.append((site, key))
                self._sites[site].forget(key)
                self._known -= 1
                section.newest = at  # it is on its way
            heapq.heappush(self._scouts, (section.scout_at(), site, name))
        return found

    def _watch(self, site: str, known: _Site, names: list[str]) -> None:
        for name in names:
            section = known.sections[name]
            if not section.watched and _SMALL <= len(section.fetched) <= _LARGE:
                section.watched = True
                heapq.heappush(self._scouts, (section.scout_at(), site, name))

    def _shrink(self) -> None:
        while self._known > self._most:
            site, known = next(iter(self._sites.items()))
            if len(self._sites) > 1:
                del self._sites[site]
                self._known -= len(known.home)
            else:
                known.forget(next(iter(known.home)))
                self._known -= 1


def _sections_of(url: str) -> list[str]:
    """Sections of a page, nearest first: its directory alone, then with all below, then each directory above."""
    directories = [name for name in urlsplit(url).path.split("/")[:-1] if name][:_DEEPEST]
    trees = ["/".join(directories[:depth]) + "/" for depth in range(len(directories), -1, -1)]
    return [f"{trees[0]}*", *trees]
