"""Siblings: when one page is found changed, the nearest others that were not fetched since become due at once.

Real pages are not independent: a release or a new template changes a directory or a whole site. So each change that
is found makes `REACH` more pages due, nearest first: of the same directory, then of the directory above and so on;
within each the longest unfetched. In a burst each of them brings more, like a chain reaction, until all that the
burst can have struck were fetched; after a lone change it dies out within REACH fetches. A page fetched after its
directory's reaction began is left alone, so no page is fetched twice for one burst.

Place in the walk (DESIGN 4): verdict -> **here** -> lane ADVANCED of the store. Only what this process fetched is known
here, at most `pages` of them; it reads no clock and touches no store.
"""

from __future__ import annotations

from collections import OrderedDict
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


class _Section:
    """The pages of a directory, with or without those below it, by the time of their last fetch."""

    __slots__ = ("began", "fetched")

    def __init__(self) -> None:
        self.fetched: OrderedDict[bytes, float] = OrderedDict()  # oldest fetch first
        self.began = float("-inf")  # when the newest reaction began


class _Site:
    __slots__ = ("home", "sections")

    def __init__(self) -> None:
        self.sections: dict[str, _Section] = {}
        self.home: dict[bytes, list[str]] = {}  # of each page the names of its sections, nearest first

    def fetched(self, key: bytes, names: list[str], at: float) -> None:
        self.forget(key)
        self.home[key] = names
        for name in names:
            self.sections.setdefault(name, _Section()).fetched[key] = at

    def forget(self, key: bytes) -> None:
        for name in self.home.pop(key, ()):
            section = self.sections[name]
            del section.fetched[key]

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

    def hear(self, site: str, url: str, key: bytes, *, at: float, since: float | None, changed: bool) -> list[bytes]:
        """A page was fetched well `at`; `since` is its fetch before, None for a first copy. Keys to make due now."""
        known = self._sites.setdefault(site, _Site())
        self._sites.move_to_end(site)
        self._known -= len(known.home)
        names = _sections_of(url)
        known.fetched(key, names, at)
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
