"""Request and process a site's robots.txt and sitemaps.

A site's robots.txt is requested before its pages. Each sitemap that a site's robots.txt lists is requested once per
period. A site requests a file on another host with a `FileRequest` to that host's site (`site_table.FileRequests`). As
RFC 9309 recommends, robots.txt is fetched once per site and kept for a day. A 4xx answer for robots.txt allows all
pages. A 5xx answer for robots.txt, or no answer, forbids all pages until a retry succeeds. Redirects of robots.txt and
sitemaps are followed, even to other hosts (RFC 9309, section 2.3.1).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain import urls
from webfountain.formats.robots import MAX_ROBOTS_BYTES, RobotsRules, robots_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.formats.robots import Ruling
    from webfountain.frontier.batch import Batch, ReadSitemap
    from webfountain.frontier.sites.addresses import Place
    from webfountain.frontier.sites.hand import Hand
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.records import FetchKind, FetchResult, SiteState

__all__ = [
    "DISALLOWED",
    "MAX_HOPS",
    "ROBOTS_LIFE_S",
    "FileRequest",
    "RobotsAnswer",
    "SiteFiles",
    "SiteRobots",
    "is_redirect",
]

ROBOTS_LIFE_S: Final = 86_400.0
"""Longest time for which a cached robots.txt is used, in seconds: 24 hours (RFC 9309, section 2.4)."""
MAX_HOPS: Final = 5
_ALLOW_ALL: Final = RobotsRules.parse(b"", "*")
MAX_SITEMAPS: Final = 100
"""Maximum number of sitemaps of one site that are read; further sitemaps are only counted."""
MAX_SITEMAP_HOPS: Final = 20
"""Maximum number of redirects in a row for one sitemap."""
DISALLOWED: Final = "robots.txt"
"""Error word of a URL that robots.txt forbids."""


def is_redirect(status: int | None) -> bool:
    """Return whether an answer redirects to another URL."""
    return status is not None and 300 < status < 400 and status != 304


class RobotsAnswer(NamedTuple):
    """What to do after an answer for robots.txt: follow the redirect to `hop`, or obey the `ruling` about pages."""

    hop: str | None = None
    ruling: Ruling | None = None


class SiteRobots:
    """The state of a site's robots.txt.

    While robots.txt is being fetched, `asking` is the requested URL. Answers for any URL but `asking` are ignored.
    """

    __slots__ = ("_hops", "_parse", "_rules", "asked_at", "asking", "body", "failures", "is_refused")

    def __init__(self, state: SiteState, parse: Callable[[bytes], RobotsRules]) -> None:
        self._parse = parse
        self._rules: RobotsRules | None = None
        self._hops = 0
        self.body = state.robots
        """The parsed robots.txt, or None if everything is allowed."""
        self.asking: str | None = None
        self.asked_at = state.robots_at
        """Time of the last request for robots.txt that ended, successful or not; None before the first one."""
        self.failures = state.robots_failures
        """Number of failed requests for robots.txt in a row."""
        self.is_refused = not state.robots_ok
        """True if no page may be requested, because the last fetch of robots.txt failed."""

    # ------------------------------------------------------------- fetching it

    def is_needed(self, at: float) -> bool:
        """Return whether robots.txt is unknown or has expired, so that it must be fetched before any page."""
        return self.asked_at is None or self.is_refused or self.is_outdated(at)

    def is_outdated(self, at: float) -> bool:
        """Return whether the stored robots.txt has expired."""
        return self.asked_at is not None and at - self.asked_at >= ROBOTS_LIFE_S

    def begin(self, site: str, at: float) -> str | None:
        """Return the URL of robots.txt if it must be fetched before any page, or None."""
        if not self.is_needed(at):
            return None
        self._hops = 0
        self.asking = f"{site}/robots.txt"
        return self.asking

    def waive(self) -> None:
        """Allow pages to be fetched even if the last fetch of robots.txt failed."""
        self.is_refused = False

    def answered(self, fetched: FetchResult) -> RobotsAnswer:
        """Process an answer for robots.txt."""
        location = fetched.header("location") if is_redirect(fetched.status) else None
        target = urls.join(fetched.fetch.url, location) if location else None
        if target is not None and self._hops < MAX_HOPS:
            self._hops += 1
            self.asking = target
            return RobotsAnswer(hop=target)
        self.asking = None
        self.asked_at = fetched.at
        ruling = robots_verdict(fetched.status, fetched.error)
        self.is_refused = ruling == "refuse"
        if self.is_refused:
            self.failures += 1
        else:
            self.failures = 0
            body = fetched.body[:MAX_ROBOTS_BYTES] if fetched.reading is None else fetched.reading
            self.body = body if ruling == "rules" else None
            self._rules = None
        return RobotsAnswer(ruling=ruling)

    # ------------------------------------------------------------- its rules

    def allows(self, url: str) -> bool:
        """Return whether the stored robots.txt allows a canonical URL of the site."""
        return self.body is None or self._known().allowed(url)

    @property
    def crawl_delay(self) -> float:
        """The Crawl-delay, in seconds; 0 if there is none."""
        return 0.0 if self.body is None else self._known().crawl_delay or 0.0

    @property
    def sitemaps(self) -> Sequence[str]:
        """The URLs of sitemaps, as written in robots.txt."""
        return self._known().sitemaps

    def _known(self) -> RobotsRules:
        if self._rules is None:
            self._rules = self._parse(self.body) if self.body else _ALLOW_ALL
        return self._rules


class FileRequest(NamedTuple):
    """A site's request for a file on another site, with an `error` if the file cannot be delivered."""

    kind: FetchKind
    url: str
    requester: str
    error: str | None = None


class SiteFiles:
    """The robots.txt of one site and the sitemaps that it lists, with the times of the last requests for them.

    If *another* site lists a sitemap on this site, the sitemap waits here until this site's robots.txt is known.
    """

    __slots__ = ("_context", "_hand", "_hops", "_place", "_reading", "_sitemaps", "_waiting", "robots")

    def __init__(self, state: SiteState, context: SiteContext, place: Place, hand: Hand) -> None:
        self._context = context
        self._place = place
        self._hand = hand
        self._sitemaps = dict(state.sitemaps)
        self._reading: set[str] = set()  # sitemaps that the worker is reading
        self._waiting: list[str] = []
        self._hops: dict[str, int] = {}  # redirects that led to a sitemap that has not answered yet
        self.robots = SiteRobots(state, context.parse_robots)

    def restore(self, state: SiteState) -> None:
        """Add the robots.txt and the sitemaps from a stored state."""
        self._sitemaps |= dict(state.sitemaps)
        if self.robots.asked_at is None and self.robots.asking is None:
            self.robots = SiteRobots(state, self._context.parse_robots)

    def stored(self, state: SiteState) -> SiteState:
        """Return `state` with the robots.txt and the request times of the sitemaps."""
        robots = self.robots
        return msgspec.structs.replace(
            state,
            robots=robots.body,
            robots_at=robots.asked_at,
            robots_ok=not robots.is_refused,
            robots_failures=robots.failures,
            sitemaps=tuple(self._sitemaps.items()),
        )

    # ------------------------------------------------------------ robots.txt

    def lacks_robots(self, at: float) -> bool:
        """Return whether pages must wait until robots.txt has been fetched."""
        return self._context.obey_robots and self.robots.is_needed(at)

    def begin_robots(self, at: float) -> bool:
        """Request robots.txt if pages must wait for it, and return whether they must wait."""
        url = self.robots.begin(self._place.name, at)
        if url is not None:
            self._hand.add_robots(self._place.request("robots", url))
        return url is not None

    def follow_robots(self, url: str) -> list[FileRequest]:
        if urls.site_of(url) != self._place.name:
            return [FileRequest("robots", url, self._place.name)]
        self._hand.add_robots(self._place.request("robots", url))
        return []

    # -------------------------------------------------------------- sitemaps

    def name_sitemaps(self, found: Iterable[str], batch: Batch) -> list[FileRequest]:
        """Request the sitemaps that were not requested within the last period. Return requests to other sites for
        sitemaps on other hosts.
        """
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
        """Pass a fetched sitemap to the worker, or follow its redirect."""
        hops = self._hops.pop(fetched.fetch.url, 0)
        if fetched.status == 200:
            self._reading.add(fetched.fetch.url)
            batch.read_sitemap(fetched, of=self._place.name)
            return []
        location = fetched.header("location") if is_redirect(fetched.status) else None
        target = None if location is None else urls.join(fetched.fetch.url, location)
        if target is not None and hops < MAX_SITEMAP_HOPS:
            self._hops[target] = hops + 1
            return self.name_sitemaps([target], batch)
        self._context.metrics.inc("sitemap/failed")
        return []

    def sitemap_read(self, read: ReadSitemap, batch: Batch) -> list[FileRequest]:
        """Request the further sitemaps in a sitemap that was read, like `name_sitemaps`."""
        self._reading.discard(read.url)
        return self.name_sitemaps(read.children, batch)

    def is_being_read(self) -> bool:
        """Return whether the worker is reading a sitemap of the site, which may list further sitemaps."""
        return bool(self._reading)

    # ------------------------------------------------- files for other sites

    def add(self, kind: FetchKind, url: str) -> None:
        """Queue the request for a file on this site."""
        self._hand.add_file(self._place.request(kind, url))

    def add_waiting(self, url: str) -> None:
        """Add the URL of a sitemap that another site needs, but that must wait for this site's robots.txt."""
        self._waiting.append(url)

    def has_waiting(self) -> bool:
        """Return whether another site's sitemap waits for this site's robots.txt."""
        return bool(self._waiting)

    def open(self, batch: Batch, *, own: bool) -> list[FileRequest]:
        """Request the waiting sitemaps that robots.txt allows and, if `own` is True, the sitemaps that it lists.

        Return requests to other sites for their sitemaps, and requests with an error for sitemaps that robots.txt
        forbids.
        """
        refused: list[FileRequest] = []
        if own and self._context.collection.discovery.sitemaps:
            refused = self.name_sitemaps(self.robots.sitemaps, batch)
        waiting, self._waiting = self._waiting, []
        for url in waiting:
            if self._context.obey_robots and not self.robots.allows(url):
                refused.append(FileRequest("sitemap", url, self._place.name, DISALLOWED))
            else:
                self.add("sitemap", url)
        return refused

    def give_up(self, error: str) -> list[FileRequest]:
        """Drop all files that were not fetched yet, and return a request with an error for each of them."""
        files = [(fetch.kind, fetch.url) for fetch in self._hand.take_files()]
        files += [("sitemap", url) for url in self._waiting]
        self._waiting.clear()
        for _, url in files:
            self._sitemaps.pop(url, None)  # named, not read yet
        return [FileRequest(kind, url, self._place.name, error) for kind, url in files]
