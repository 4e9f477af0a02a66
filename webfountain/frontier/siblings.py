"""Siblings: pages of a directory change together, so a found change makes its neighbours due, and scouts look for it.

Real pages are not independent: a release or a new template changes a directory or a whole site. So each change that is
found makes some more pages due, nearest first: of the same directory, then of the directory above and so on; within
each the longest unfetched. In a burst each of them brings more, like a chain reaction, until all that the burst can
have struck were fetched; after a lone change it dies out. A page fetched after its directory's reaction began is left
alone, so no page is fetched twice for one burst. How many is learned: a directory whose siblings were struck in vain
brings few, and a change that was to be expected of the page, or of the sibling, tells nothing.

Pages that were fetched together come due together, and until then nobody looks at their directory. So each small
directory is to be looked at evenly: n pages that are due every I seconds each, one every I/n. When none was for that
time, divided by the share of siblings that change together, the one fetched longest ago is due: a scout. It costs no
fetch more, only another order.

Place in the walk (DESIGN 4): verdict -> **here** -> lane ADVANCED of the store. Only what this process fetched is known
here, at most `pages` of them; it reads no clock and touches no store.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from math import inf
from typing import Final
from urllib.parse import urlsplit

__all__ = ["REACH", "Siblings"]

REACH: Final = 8
"""Pages that a surprising change makes due in a section whose siblings always change with it."""
_BELIEF, _DOUBT = 0.5, 2.0
"""Share of siblings struck with a page that is believed of a site, and what a prior is worth, in tries."""
_MEMORY: Final = 50.0
"""Siblings tried after which half of what a section learned is forgotten."""
_DEEPEST: Final = 6
"""Directories above a page that are looked at; deeper ones count as their ancestor."""
_PAGES: Final = 50_000
_SMALL, _LARGE = 3, 64
"""Pages of a section that scouts look after: fewer tell little of each other, more are fetched evenly anyhow."""


class _Share:
    """Share of siblings that were found changed beyond expectation, of those that were tried."""

    __slots__ = ("hits", "tries")

    def __init__(self) -> None:
        self.hits = self.tries = 0.0

    def learn(self, hit: float) -> None:
        """A sibling that was made due has been fetched."""
        if self.tries >= _MEMORY:
            self.hits, self.tries = self.hits / 2, self.tries / 2
        self.hits, self.tries = self.hits + hit, self.tries + 1.0

    def believed(self, prior: float) -> float:
        """The share, with a prior worth _DOUBT tries."""
        return (self.hits + _DOUBT * prior) / (self.tries + _DOUBT)


class _Section:
    """The pages of a directory, with or without those below it, by the time of their last fetch."""

    __slots__ = ("began", "credit", "fetched", "learned", "newest", "rate", "watched")

    def __init__(self) -> None:
        self.fetched: OrderedDict[bytes, float] = OrderedDict()  # oldest fetch first
        self.began = -inf  # when the newest reaction began
        self.newest = -inf
        self.rate = 0.0  # fetches per second that its pages are due for
        self.learned = _Share()
        self.credit = 0.0  # parts of a page that rounding owes
        self.watched = False  # whether it is among the sections that scouts look after

    def unfetched(self) -> bytes | None:
        """The page that was fetched longest ago, before the newest reaction began; None: there is none."""
        key, fetched = next(iter(self.fetched.items()), (None, inf))
        return key if fetched < self.began else None


class _Site:
    """What is known of a site's pages: in which sections each is, nearest first, and its fetches per second."""

    __slots__ = ("home", "learned", "sections", "tried")

    def __init__(self) -> None:
        self.learned = _Share()
        self.tried: dict[bytes, str] = {}  # pages made due as siblings, and which section was to learn from them
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

    def send(self, key: bytes, at: float) -> None:
        """A page is on its way: its sections are looked at."""
        for name in self.home[key][0]:
            self.sections[name].newest = at
        self.forget(key)

    def strike(self, names: list[str], since: float, at: float, reach: float) -> list[bytes]:
        """Pages that may have changed with one that was found changed, nearest first, then oldest fetch."""
        struck: list[bytes] = []
        asked = 0.0  # pages that nearer sections were asked for: what they have is not asked for again
        for name in names:
            section = self.sections[name]
            if since >= section.began:  # the change is younger than the last reaction: a new one
                section.began = at
            want = max(reach * self._share(name) - asked, 0.0)
            asked += want
            section.credit = min(section.credit, 1.0) + want
            while section.credit >= 1.0:
                key = section.unfetched()
                if key is None:
                    asked, section.credit = float(len(struck)), 0.0
                    break
                section.credit -= 1.0
                struck.append(key)
                self.forget(key)  # it is in no section until it was fetched: nobody is made due twice
                self.tried[key] = name
        return struck

    def _share(self, name: str) -> float:
        """Share of siblings that change with a page of a section; few tries leave it near the whole site's."""
        return self.sections[name].learned.believed(self.learned.believed(_BELIEF))

    def scout_at(self, name: str) -> float:
        """When a section will not have been looked at for too long."""
        section = self.sections[name]
        return section.newest + 1.0 / (section.rate * self._share(name)) if section.rate > 0 else inf

    def learn(self, key: bytes, hit: float) -> None:
        """A page was fetched; if it was made due as a sibling, its section learns."""
        name = self.tried.pop(key, None)
        if name is not None:
            self.learned.learn(hit)
            self.sections[name].learned.learn(hit)


class Siblings:
    """Hears of every check and tells which pages it makes due. Bounded: the site heard of longest ago is forgotten."""

    def __init__(self, *, strikes: bool = True, scouts: bool = True, pages: int = _PAGES) -> None:
        """Each signal can be left out; `pages` are known at most."""
        self._strikes = strikes
        self._sends = scouts
        self._most = pages
        self._known = 0
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._scouts: list[tuple[float, str, str]] = []  # when to look at a section again, at the earliest

    def hear(
        self,
        site: str,
        url: str,
        key: bytes,
        *,
        at: float,
        since: float | None,
        changed: bool,
        expected: float,
        every: float,
    ) -> list[bytes]:
        """A page was fetched well `at`; keys to make due now.

        `since` is its fetch before, None for a first copy; `expected` the probability, by its own rate, that it would
        be found changed; `every` the interval at which it is due, s.
        """
        known = self._sites.setdefault(site, _Site())
        self._sites.move_to_end(site)
        self._known -= len(known.home)
        names = _sections_of(url)
        known.fetched(key, names, at, 1.0 / every)
        self._watch(site, known, names)
        surprise = (1.0 - expected) * changed
        known.learn(key, surprise)
        struck = (
            known.strike(names, since, at, REACH * surprise) if self._strikes and changed and since is not None else []
        )
        self._known += len(known.home)
        self._shrink()
        return struck

    def scouts(self, at: float) -> list[tuple[str, bytes]]:
        """Site and key of the pages to make due because their section was not looked at for too long."""
        found = []
        while self._scouts and self._scouts[0][0] <= at:
            _, site, name = heapq.heappop(self._scouts)
            known = self._sites.get(site)
            if known is None:
                continue
            section = known.sections[name]
            section.watched = _SMALL <= len(section.fetched) <= _LARGE
            if not section.watched:
                continue
            if known.scout_at(name) <= at:
                key = next(iter(section.fetched))
                found.append((site, key))
                known.send(key, at)
                self._known -= 1
            heapq.heappush(self._scouts, (known.scout_at(name), site, name))
        return found

    def _watch(self, site: str, known: _Site, names: list[str]) -> None:
        for name in names if self._sends else ():
            section = known.sections[name]
            if not section.watched and _SMALL <= len(section.fetched) <= _LARGE:
                section.watched = True
                heapq.heappush(self._scouts, (known.scout_at(name), site, name))

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
    """Sections of a page, nearest first: "/a/*" is its directory alone, "/a/" with all below, then those above."""
    directories = [name for name in urlsplit(url).path.split("/")[:-1] if name][:_DEEPEST]
    name = "/".join(["", *directories, "*"])
    names = [name]
    while name != "/":
        name = name[: name.rindex("/", 0, -1) + 1]
        names.append(name)
    return names
