"""The robots.txt of one site by RFC 9309: when it is fetched, what its answer means, and how long that is valid.

It is fetched once per site and kept for a day. 4xx allows everything. 5xx and no answer forbid everything until a
retry succeeds. Redirects are followed (section 2.3.1), also to other hosts, whose own gates the request then passes
(`active_list`). `formats.robots` parses the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain import urls
from webfountain.formats.robots import MAX_ROBOTS_BYTES, RobotsRules, robots_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.formats.robots import Ruling
    from webfountain.records import FetchResult, SiteState

__all__ = ["MAX_HOPS", "ROBOTS_LIFE_S", "RobotsAnswer", "SiteRobots", "is_redirect"]

ROBOTS_LIFE_S: Final = 86_400.0
"""RFC 9309 section 2.4: a cached version should not be used for more than 24 hours."""
MAX_HOPS: Final = 5
_ALLOW_ALL: Final = RobotsRules.parse(b"", "*")


def is_redirect(status: int | None) -> bool:
    """Return whether an answer redirects to another URL."""
    return status is not None and 300 < status < 400 and status != 304


class RobotsAnswer(NamedTuple):
    """The result of an answer: the next URL to request, or whether pages may be fetched."""

    hop: str | None = None
    ruling: Ruling | None = None


class SiteRobots:
    """The state of a site's robots.txt.

    Invariant: `asking` is the URL that is requested now or waits to be requested, or None. Only the answer to that URL
    is used.
    """

    __slots__ = ("_body", "_hops", "_parse", "_rules", "asked_at", "asking", "failures", "is_refused")

    def __init__(self, state: SiteState, parse: Callable[[bytes], RobotsRules]) -> None:
        self._parse = parse
        self._body = state.robots
        self._rules: RobotsRules | None = None
        self._hops = 0
        self.asking: str | None = None
        self.asked_at = state.robots_at
        """Time of the last answer or error; None: never."""
        self.failures = state.robots_failures
        """Number of tries in a row without a usable answer."""
        self.is_refused = not state.robots_ok
        """True if no page may be requested, because the last try to fetch robots.txt failed."""

    # ------------------------------------------------------------- fetching it

    def is_needed(self, at: float) -> bool:
        """Return whether it must be fetched before any page is requested."""
        return self.asked_at is None or self.is_refused or self.is_outdated(at)

    def is_outdated(self, at: float) -> bool:
        """Return whether the stored robots.txt has expired."""
        return self.asked_at is not None and at - self.asked_at >= ROBOTS_LIFE_S

    def begin(self, site: str, at: float) -> str | None:
        """Return the URL to fetch if robots.txt is needed before any page, otherwise None."""
        if not self.is_needed(at):
            return None
        self._hops = 0
        self.asking = f"{site}/robots.txt"
        return self.asking

    def waive(self) -> None:
        """Continue without robots.txt, because the crawl does not obey it or no page is requested in any case."""
        self.is_refused = False

    def answered(self, fetched: FetchResult) -> RobotsAnswer:
        """Process an answer: follow a redirect, obey the rules, or refuse all pages."""
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
            self._body = body if ruling == "rules" else None
            self._rules = None
        return RobotsAnswer(ruling=ruling)

    # ------------------------------------------------------------- its rules

    def allows(self, url: str) -> bool:
        """Return whether the known rules allow fetching a canonical URL of the site."""
        return self._body is None or self._known().allowed(url)

    @property
    def crawl_delay(self) -> float:
        """Return the Crawl-delay, seconds between two requests; 0 if there is none."""
        return 0.0 if self._body is None else self._known().crawl_delay or 0.0

    @property
    def sitemaps(self) -> Sequence[str]:
        """Return the sitemaps that it names, as written."""
        return self._known().sitemaps

    def _known(self) -> RobotsRules:
        if self._rules is None:
            self._rules = self._parse(self._body) if self._body else _ALLOW_ALL
        return self._rules

    def remember(self) -> tuple[bytes | None, float | None, bool, int]:
        """Return what must be stored when the site is parked: (body, time of the last answer, whether it was usable,
        failures).
        """
        return self._body, self.asked_at, not self.is_refused, self.failures
