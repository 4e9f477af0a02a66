"""The robots.txt of one site by RFC 9309: when it must be asked, what its answer means, how long that is believed.

It is asked once per site and kept for a day: 4xx allows everything, 5xx and no answer refuse everything until a retry
succeeds, redirects are followed (section 2.3.1), also to other hosts, whose own gates the request then passes
(`active_list`). Reading the rules is `formats.robots`' business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain import urls
from webfountain.formats.robots import MAX_ROBOTS_BYTES, RobotsRules, robots_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.formats.robots import Ruling
    from webfountain.records import Fetched, SiteState

__all__ = ["MAX_HOPS", "ROBOTS_LIFE_S", "RobotsAnswer", "SiteRobots", "is_redirect"]

ROBOTS_LIFE_S: Final = 86_400.0
"""RFC 9309 section 2.4: a cached version should not be used for more than 24 hours."""
MAX_HOPS: Final = 5
_ALLOW_ALL: Final = RobotsRules.parse(b"", "*")


def is_redirect(status: int | None) -> bool:
    """Whether an answer leads to another URL."""
    return status is not None and 300 < status < 400 and status != 304


class RobotsAnswer(NamedTuple):
    """What an answer led to: another URL to ask, or a ruling."""

    hop: str | None = None
    ruling: Ruling | None = None


class SiteRobots:
    """What is known of a site's robots.txt.

    Invariant: `asking` is the URL that is asked now or waits to be, None while nothing is awaited; only the answer to
    that URL is understood.
    """

    __slots__ = ("_body", "_hops", "_parse", "_rules", "asked_at", "asking", "failures", "is_refused")

    def __init__(self, state: SiteState, parse: Callable[[bytes], RobotsRules]) -> None:
        self._parse = parse
        self._body = state.robots
        self._rules: RobotsRules | None = None
        self._hops = 0
        self.asking: str | None = None
        self.asked_at = state.robots_at
        """When it was last answered or tried; None: never."""
        self.failures = state.robots_failures
        """Tries in a row that brought no answer to obey."""
        self.is_refused = not state.robots_ok
        """Nothing may be asked: it could not be had when it was last tried."""

    # ------------------------------------------------------------- its life

    def is_needed(self, at: float) -> bool:
        """Whether it must be asked before any page goes out."""
        return self.asked_at is None or self.is_refused or self.is_outdated(at)

    def is_outdated(self, at: float) -> bool:
        """Whether what is known of it has lived its time."""
        return self.asked_at is not None and at - self.asked_at >= ROBOTS_LIFE_S

    def ask(self, site: str) -> str:
        """Begin to ask; the URL to fetch."""
        self._hops = 0
        self.asking = f"{site}/robots.txt"
        return self.asking

    def waive(self) -> None:
        """It is not asked: the crawl does not obey it, or no page will go out in any case."""
        self.is_refused = False

    def answered(self, fetched: Fetched) -> RobotsAnswer:
        """Follow, obey or refuse."""
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
            self._body = fetched.body[:MAX_ROBOTS_BYTES] if ruling == "rules" else None
            self._rules = None
        return RobotsAnswer(ruling=ruling)

    # ------------------------------------------------------------- its rules

    def allows(self, url: str) -> bool:
        """Whether a canonical URL of the site may be fetched, by what is known."""
        return self._body is None or self._known().allowed(url)

    @property
    def crawl_delay(self) -> float:
        """Seconds between two requests that it asks for; 0 when it names none."""
        return 0.0 if self._body is None else self._known().crawl_delay or 0.0

    @property
    def sitemaps(self) -> Sequence[str]:
        """The sitemaps that it names, as written."""
        return self._known().sitemaps

    def _known(self) -> RobotsRules:
        if self._rules is None:
            self._rules = self._parse(self._body) if self._body else _ALLOW_ALL
        return self._rules

    def remember(self) -> tuple[bytes | None, float | None, bool, int]:
        """(body, asked at, whether it was to be had, failures): what must outlive the visit."""
        return self._body, self.asked_at, not self.is_refused, self.failures
