"""Files of a site, its robots.txt and its sitemaps: when and where they are fetched.

Place in the walk: a site requests its robots.txt before its pages, and the sitemaps that it names once per period.
They pass through its hand like pages. A file on another host becomes a `FileRequest`, which the active list passes to
the site there (`file_requests`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain import urls
from webfountain.frontier.sites.robots_state import SiteRobots, is_redirect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.addresses import Place
    from webfountain.frontier.sites.hand import Hand
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.records import FetchKind, FetchResult, SiteState

__all__ = ["DISALLOWED", "FileRequest", "SiteFiles"]

MAX_SITEMAPS: Final = 100
"""Largest number of sitemaps of one site that are read. The rest of a longer index is dropped and counted."""
DISALLOWED: Final = "robots.txt"
"""Error of a URL that a robots.txt forbids."""


class FileRequest(NamedTuple):
    """A request of one site for a file of another. It comes back with an `error` if there is no file."""

    kind: FetchKind
    url: str
    requester: str
    error: str | None = None


class SiteFiles:
    """The robots.txt of one site, and the sitemaps that it named, with the time of each.

    Sitemaps that *other* sites named wait here until the robots.txt of this site is known.
    """

    __slots__ = ("_context", "_hand", "_place", "_sitemaps", "_waiting", "robots")

    def __init__(self, state: SiteState, context: SiteContext, place: Place, hand: Hand) -> None:
        self._context = context
        self._place = place
        self._hand = hand
        self._sitemaps = dict(state.sitemaps)
        self._waiting: list[str] = []
        self.robots = SiteRobots(state, context.parse_robots)

    def restore(self, state: SiteState) -> None:
        """Add the state of an earlier activation of the site."""
        self._sitemaps |= dict(state.sitemaps)
        if self.robots.asked_at is None and self.robots.asking is None:
            self.robots = SiteRobots(state, self._context.parse_robots)

    def sitemaps(self) -> tuple[tuple[str, float], ...]:
        """Return each sitemap with the time of its last request, UTC seconds."""
        return tuple(self._sitemaps.items())

    # ------------------------------------------------------------ robots.txt

    def lacks_robots(self, at: float) -> bool:
        """Return whether robots.txt must be fetched before any page."""
        return self._context.obey_robots and self.robots.is_needed(at)

    def begin_robots(self, at: float) -> bool:
        """Request robots.txt if pages must wait for it, and return whether they must."""
        url = self.robots.begin(self._place.name, at)
        if url is not None:
            self._hand.add_robots(self._place.request("robots", url))
        return url is not None

    def follow_robots(self, url: str) -> list[FileRequest]:
        """Follow a redirect of robots.txt."""
        if urls.site_of(url) != self._place.name:
            return [FileRequest("robots", url, self._place.name)]
        self._hand.add_robots(self._place.request("robots", url))
        return []

    # -------------------------------------------------------------- sitemaps

    def name_sitemaps(self, found: Iterable[str], batch: Batch) -> list[FileRequest]:
        """Request the sitemaps that were not read within a period; new ones are requested at once."""
        metrics, elsewhere = self._context.metrics, []
        name = self._place.name
        for reference in found:
            url = urls.join(name + "/", reference)
            if url is None or not self._context.judge.is_in_scope(urls.site_of(url)):
                metrics.inc("sitemap/out_of_scope")
            elif url not in self._sitemaps and len(self._sitemaps) >= MAX_SITEMAPS:
                metrics.inc("sitemap/too_many")
            elif batch.at - self._sitemaps.get(url, -inf) >= self._context.collection.cycle.period_s:
                self._sitemaps[url] = batch.at
                metrics.inc("sitemap/fetched")
                if urls.site_of(url) == name:
                    self.add("sitemap", url)
                else:
                    elsewhere.append(FileRequest("sitemap", url, name))
        return elsewhere

    def sitemap_answered(self, fetched: FetchResult, batch: Batch) -> list[FileRequest]:
        """Pass a sitemap to the worker, which reads it, or follow its redirect."""
        if fetched.status == 200:
            batch.read_sitemap(fetched, of=self._place.name)
            return []
        location = fetched.header("location") if is_redirect(fetched.status) else None
        if location is not None and (target := urls.join(fetched.fetch.url, location)) is not None:
            return self.name_sitemaps([target], batch)
        self._context.metrics.inc("sitemap/failed")
        return []

    # ------------------------------------------------- files for other sites

    def add(self, kind: FetchKind, url: str) -> None:
        """Request a file in the site's turn."""
        self._hand.files.load([self._place.request(kind, url)])

    def add_waiting(self, url: str) -> None:
        """Until robots.txt is known, keep a sitemap that another site named."""
        self._waiting.append(url)

    def has_waiting(self) -> bool:
        """Return whether other sites' sitemaps wait for robots.txt."""
        return bool(self._waiting)

    def release_waiting(self) -> list[FileRequest]:
        """Request the waiting sitemaps that robots.txt allows, and return the others."""
        refused = []
        waiting, self._waiting = self._waiting, []
        for url in waiting:
            if self._context.obey_robots and not self.robots.allows(url):
                refused.append(FileRequest("sitemap", url, self._place.name, DISALLOWED))
            else:
                self.add("sitemap", url)
        return refused

    def give_up(self, error: str) -> list[FileRequest]:
        """Return the files that were not fetched yet, the site's own and those for other sites, with an error."""
        files = [(fetch.kind, fetch.url) for fetch in self._hand.take_files()]
        files += [("sitemap", url) for url in self._waiting]
        self._waiting.clear()
        for _, url in files:
            self._sitemaps.pop(url, None)  # named, not read yet
        return [FileRequest(kind, url, self._place.name, error) for kind, url in files]
