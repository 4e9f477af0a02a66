"""How long to leave a site alone: the delay after a request, the back-off after a refusal, Retry-After; its standing.

One request at a time per site and per address, the next one after max(min_delay, factor x duration, Crawl-delay)
(Mercator's rule, Broder 2003; the Crawl-delay bounded by `max_delay`). A site that answers 429 or 503, or not at
all, or closes the connection on us, is left alone for a time that doubles with each refusal, jittered so that sites do
not come back in step.
"""

from __future__ import annotations

import email.utils
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.sites.sequencer import Gate

if TYPE_CHECKING:
    import random

    from webfountain.frontier.sites.addresses import Group
    from webfountain.metrics import Metrics
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import Fetched, SiteState

__all__ = [
    "LONGEST_BACKOFF_S",
    "SITE_ERRORS",
    "Standing",
    "backoff",
    "delay_after",
    "page_backoff",
    "refuses",
    "retry_after",
]

LONGEST_BACKOFF_S: Final = 86_400.0
"""A refusal, however often repeated and whatever Retry-After asks, is forgotten after a day: then we ask once."""

SITE_ERRORS: Final = frozenset({"dns", "private-address", "connect", "timeout", "network"})
"""Errors that say something of the whole site, not of one page."""


def delay_after(seconds: float, *, min_delay: float, factor: float, crawl_delay: float, max_delay: float) -> float:
    """Seconds to wait after a request that took `seconds`."""
    return max(min_delay, min(max(factor * seconds, crawl_delay), max_delay))


def refuses(status: int | None, error: str | None) -> bool:
    """Whether an answer asks us to leave the site alone (RFC 6585, RFC 9110 section 15.6.4), or none came whole."""
    return status in (429, 503) or error in SITE_ERRORS or error == "cut"


def backoff(failures: int, *, base: float, rng: random.Random) -> float:
    """Seconds for the `failures`-th refusal in a row (1, 2, …): base doubled each time, jittered by +-25 %."""
    doubled = base * 2.0 ** min(failures - 1, 40)
    return min(doubled, LONGEST_BACKOFF_S) * rng.uniform(0.75, 1.25)


def page_backoff(failures: int, *, period: float) -> float:
    """Seconds until a gone or failed page is asked again: 1 period, doubled each time, up to 180 periods."""
    return period * min(2.0 ** min(failures - 1, 40), 180.0)


def retry_after(value: str | None, *, at: float) -> float:
    """Seconds that a Retry-After header asks for, as number or date; 0 when absent, past or unreadable."""
    if value is None:
        return 0.0
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_BACKOFF_S)
    try:
        when = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(when - at, 0.0), LONGEST_BACKOFF_S)


class Standing:
    """How a site stands with us: its gate, its Crawl-delay, and its refusals in a row.

    Invariant: whoever took a slot of the gate (and of its address's) has it given back by `landed`, exactly once.
    """

    __slots__ = ("_metrics", "_rng", "_rules", "crawl_delay", "failures", "gate", "rests_until")

    def __init__(self, state: SiteState, rules: PolitenessTable, *, rng: random.Random, metrics: Metrics) -> None:
        self._rules = rules
        self._rng = rng
        self._metrics = metrics
        self.gate = Gate(rules.concurrency, open_at=state.next_at)
        self.crawl_delay = state.crawl_delay
        self.failures = state.failures
        """Refusals in a row (429, 503, no connection): the exponent of its back-off."""
        self.rests_until = 0.0
        """It asked to be left alone until then, or could not be reached, UTC seconds."""

    def opens_at(self) -> float:
        """From when on it may be asked again; inf while it is asked."""
        return self.gate.open_at()

    def next_at(self, at: float) -> float:
        """From when on another process may ask it, if this one ends `at`."""
        opens = self.gate.open_at()
        rules = self._rules
        return opens if opens < inf else at + max(rules.min_delay, min(self.crawl_delay, rules.max_delay))

    def obey(self, crawl_delay: float, *, at: float) -> None:
        """A robots.txt was read `at`; its Crawl-delay (0: none) also holds before the first page."""
        self.crawl_delay = crawl_delay
        self.gate.hold(at + min(crawl_delay, self._rules.max_delay))

    def landed(self, fetched: Fetched, group: Group) -> bool:
        """A fetch ended, however: the gates of site and address open again when politeness says.

        `group` let it out: the site may have moved to another address since. Returns whether the site refused us.
        """
        rules = self._rules
        wait = delay_after(
            fetched.seconds,
            min_delay=rules.min_delay,
            factor=rules.delay_factor,
            crawl_delay=self.crawl_delay,
            max_delay=rules.max_delay,
        )
        self.gate.give(fetched.at + wait)
        group.gate.give(fetched.at + min(wait, max(rules.min_delay, rules.delay_factor * fetched.seconds)))
        if refuses(fetched.status, fetched.error):
            self._back_off(fetched)
            return True
        if fetched.status is not None:
            self.failures = 0
        return False

    def unasked(self, group: Group, at: float) -> None:
        """A fetch did not take place."""
        self.gate.give(at)
        group.gate.give(at)

    def unreachable(self, at: float) -> float:
        """Its host has no address; until when to leave it alone."""
        self.failures += 1
        return at + self.back_off_s(self.failures)

    def back_off_s(self, failures: int) -> float:
        """Seconds for the `failures`-th failure in a row."""
        return backoff(failures, base=max(1.0, 10.0 * self._rules.min_delay), rng=self._rng)

    def hold(self, until: float) -> None:
        """Let nothing out before a time."""
        self.gate.hold(until)

    def join(self, state: SiteState) -> None:
        """Take over what another visit of the site learned: the more careful of both holds."""
        self.gate.hold(state.next_at)
        self.failures = max(self.failures, state.failures)
        self.crawl_delay = max(self.crawl_delay, state.crawl_delay)

    def _back_off(self, fetched: Fetched) -> None:
        """Shut the gate for longer with each refusal, and as long as the site asked."""
        self.failures += 1
        if fetched.header("retry-after") is not None:
            self._metrics.inc("politeness/retry_after")
        asked = retry_after(fetched.header("retry-after"), at=fetched.at)
        self.rests_until = fetched.at + max(asked, self.back_off_s(self.failures))
        self.gate.hold(self.rests_until)
        self._metrics.inc("politeness/backed_off")
