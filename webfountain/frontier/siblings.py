"""Siblings: pages of a directory change together, so a found change makes its neighbours due, and scouts look for it.

Real pages are not independent: a release or a new template changes a directory or a whole site. So each change that is
found makes some more pages due, nearest first: of the same directory, then of the directory above and so on; within
each the longest unfetched. In a burst each of them brings more, like a chain reaction, until all that the burst can
have struck were fetched; after a lone change it dies out. A page fetched after its directory's reaction began is left
alone, so no page is fetched twice for one burst. How many is learned, from the reactions of the past and from every
page fetched since this one began: it grows where they have changed too. A change that was to be expected tells nothing.

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
"""Share of siblings that is believed to change with a page before anything is known; what a prior is worth."""
_MEMORY: Final = 16.0
"""Reactions after which half of the past is forgotten."""
_DEEPEST: Final = 6
"""Directories above a page that are looked at; deeper ones count as their ancestor."""
_PAGES: Final = 50_000
_SMALL, _LARGE = 3, 64
"""Pages of a section that scouts look after: fewer tell little of each other, more are fetched evenly anyhow."""


class _Past:
    """Which share of the siblings changed with a page, by the reactions so far: each counts once, however large."""

    __slots__ = ("reactions", "shares")

    def __init__(self) -> None:
        self.reactions = self.shares = 0.0

    def add(self, hits: float, tries: float) -> None:
        """A reaction is over; with few tries it counts less."""
        if self.reactions >= _MEMORY:
            self.reactions, self.shares = self.reactions / 2, self.shares / 2
        self.reactions += tries / (tries + _DOUBT)
        self.shares += hits / (tries + _DOUBT)

    def share(self, prior: float) -> float:
        """The mean share, drawn to a prior that is worth _DOUBT reactions."""
        return (self.shares + _DOUBT * prior) / (self.reactions + _DOUBT)


class _Section:
    """The pages of a directory, with or without those below it, by the time of their last fetch."""

    __slots__ = ("began", "credit", "fetched", "hits", "newest", "past", "rate", "tries", "watched")

    def __init__(self) -> None:
        self.fetched: OrderedDict[bytes, float] = OrderedDict()  # oldest fetch first
        self.began = -inf  # when the newest reaction began
        self.hits = self.tries = 0.0  # its siblings that changed beyond expectation, and all that were fetched since
        self.past = _Past()
        self.newest = -inf
        self.rate = 0.0  # fetches per second that its pages are due for
        self.credit = 0.0  # parts of a page that rounding owes
        self.watched = False  # whether it is among the sections that scouts look after

    def unfetched(self) -> bytes | None:
        """The page that was fetched longest ago, before the newest reaction began; None: there is none."""
        key, fetched = next(iter(self.fetched.items()), (None, inf))
        return key if fetched < self.began else None

    def share(self, site: float) -> float:
        """Share of siblings believed to have changed in the newest reaction, from its tries and from the past."""
        return (self.hits + _DOUBT * self.past.share(site)) / (self.tries + _DOUBT)


class _Site:
    """What is known of a site's pages: in which sections each is, nearest first, and its fetches per second."""

    __slots__ = ("home", "past", "sections")

    def __init__(self) -> None:
        self.past = _Past()
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
                self.begin(section, at)
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
                self.forget(key)  # it is in no section until it was fetched: none is made due twice
        return struck

    def begin(self, section: _Section, at: float) -> None:
        """A new reaction; what the last one showed is kept."""
        for past in (section.past, self.past):
            past.add(section.hits, section.tries)
        section.began, section.hits, section.tries = at, 0.0, 0.0

    def learn(self, names: list[str], since: float, hit: float) -> None:
        """A page was fetched: it may have changed with those whose reaction began after its fetch before."""
        for name in names:
            section = self.sections[name]
            if since < section.began:
                section.tries += 1.0
                section.hits += hit

    def _share(self, name: str) -> float:
        return self.sections[name].share(self.past.share(_BELIEF))

    def scout_at(self, name: str) -> float:
        """When a section will not have been looked at for too long."""
        section = self.sections[name]
        share = section.past.share(self.past.share(_BELIEF))
        return section.newest + 1.0 / (section.rate * share) if section.rate > 0 else inf


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
        struck = []
        if since is not None:
            known.learn(names, since, surprise)
            if changed and self._strikes:
                struck = known.strike(names, since, at, REACH * surprise)
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
