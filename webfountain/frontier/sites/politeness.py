"""Decide when the next request may be sent to a site or an address.

In a collection, the policy file's politeness table sets the delays, and the crawl obeys every delay that a site
requests. A Scrapy project that uses the add-on without a policy file sets the delays in its settings (`SitePace`), and
Scrapy's downloader applies them (`crawl.project_pace`).
"""

from __future__ import annotations

import email.utils
import heapq
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from webfountain.metrics import Metrics
    from webfountain.policy.tables import PolitenessTable
    from webfountain.records import FetchResult, SiteState

__all__ = [
    "LONGEST_BACKOFF_S",
    "SITE_ERRORS",
    "Gate",
    "HoldRule",
    "SitePace",
    "SitePoliteness",
    "backoff",
    "delay_after",
    "refuses",
    "retry_after",
]

HoldRule = Literal["Crawl-delay", "Retry-After", "back-off", "robots.txt"]
"""A rule that can make the delay between requests to a site longer than usual."""
LONGEST_BACKOFF_S: Final = 86_400.0
"""Longest back-off, in seconds: one day. A Retry-After of more than one day is reduced to one day."""
SITE_ERRORS: Final = frozenset({"dns", "private-address", "connect", "tls", "certificate", "timeout", "network"})
"""Errors that concern the whole site rather than one page."""


class Gate:
    """The gate of one site or address: `concurrency` slots, each with its own delay.

    Each request in flight uses one of `concurrency` slots. A slot that is lent to another ant counts as used.
    """

    __slots__ = ("_free", "_is_closed", "_shut_until", "in_flight", "lent_until", "opens_at")

    def __init__(self, concurrency: int = 1, *, open_at: float = 0.0) -> None:
        self._free = [open_at] * concurrency
        self._shut_until = open_at
        self._is_closed = False
        self.lent_until = 0.0
        """Until this time, another ant may use slots of this gate."""
        self.in_flight = 0
        self.opens_at = open_at
        """Earliest time at which a slot may be taken, UTC seconds, or inf while all slots are used or the gate is
        closed.
        """

    def take(self) -> None:
        """Take the slot that has been open the longest. Do not call this method before `opens_at`."""
        heapq.heappop(self._free)
        self.in_flight += 1
        self._note_change()

    def give(self, open_at: float) -> None:
        """Give a slot back to the gate, to open again at `open_at`."""
        self.in_flight -= 1
        heapq.heappush(self._free, max(open_at, self._shut_until))
        self._note_change()

    def hold(self, until: float) -> None:
        """Keep every slot shut at least until `until`, including slots that are given back earlier."""
        self._shut_until = max(self._shut_until, until)
        self._free = sorted(max(slot, until) for slot in self._free)
        self._note_change()

    # ------------------------------------------- while a request is in a downloader's queue

    def close(self) -> None:
        """Keep all slots shut until `reopen` is called, because a request waits in the downloader's queue."""
        self._is_closed = True
        self._note_change()

    def reopen(self, open_at: float) -> None:
        """Undo `close`, and allow the next request at `open_at`."""
        self._is_closed = False
        self.hold(open_at)

    def widen(self) -> None:
        """Add a slot for the duration of a request, so that this request does not use up one of the gate's own
        slots.
        """
        heapq.heappush(self._free, self._shut_until)
        self._note_change()

    def narrow(self) -> None:
        """Remove a slot that `widen` added."""
        self._free.remove(max(self._free))
        heapq.heapify(self._free)
        self._note_change()

    # ------------------------------------------------------ lending to another ant

    def spare(self, since: float) -> int:
        """Return the number of free slots that opened at the time `since` or earlier. If `since` is inf, count all free
        slots.
        """
        return sum(slot <= since for slot in self._free)

    def lend(self, many: int, *, until: float) -> float:
        """Lend `many` free slots to another ant until `until`, and return when the ant may use all of them."""
        self._free.sort()
        lent = [self._free.pop() for _ in range(many)]
        self._note_change()
        self.in_flight += many
        self.prolong(until)
        return max(lent)

    def prolong(self, until: float) -> None:
        """Allow the use of lent slots until `until`."""
        self.lent_until = max(self.lent_until, until)

    def take_back(self, many: int, open_at: float) -> None:
        """Take back `many` lent slots, which open at `open_at`."""
        for _ in range(many):
            self.give(open_at)

    def next_for_others(self, at: float, delay_s: float) -> float:
        """Return when another process may use all slots if this process ends at `at`. Another process must wait for a
        full delay before it uses a slot that is now in use.
        """
        opens = max(self._free, default=0.0)
        return max(opens, at + delay_s, self.lent_until + delay_s) if self.in_flight else opens

    def _note_change(self) -> None:
        self.opens_at = self._free[0] if self._free and not self._is_closed else inf


@dataclass(slots=True, frozen=True)
class SitePace:
    """Rules about the delays between requests, for all sites of a crawl."""

    slots: Callable[[str], int | None] = lambda _: None
    """Function that returns the maximum number of simultaneous requests to a site, or None for
    `politeness.concurrency`.
    """
    keeps_delay: bool = True
    """True if gates apply `politeness.min_delay` after each request, and False if Scrapy's downloader applies a delay
    instead.
    """
    crawl_delay: bool = True
    """True if the Crawl-delay of a robots.txt is obeyed."""
    retry_after: bool = True
    """True if the Retry-After header of 429 and 503 answers is obeyed."""
    back_off: bool = True
    """True if the delay of a site grows with each 429 or 503 answer, and with each request without an answer."""
    lends: bool = True
    """True if other ants may borrow slots of a site."""
    report: Callable[[str, HoldRule, float], None] = lambda _site, _rule, _seconds: None
    """Function that is called with a site, a rule and the seconds for which the rule delays the site."""


class SitePoliteness:
    """The gate of a site, its Crawl-delay, and its number of refusals in a row.

    Each fetch takes a slot from the gates of its site and its address. The slots of a fetch are given back exactly
    once, by `landed` or `unasked`.
    """

    __slots__ = (
        "_metrics",
        "_pace",
        "_rng",
        "_rules",
        "_slow_pages",
        "crawl_delay",
        "failures",
        "gate",
        "rests_until",
        "site_error",
    )

    def __init__(
        self,
        state: SiteState,
        rules: PolitenessTable,
        *,
        rng: random.Random,
        metrics: Metrics,
        pace: SitePace,
        slots: int | None = None,
    ) -> None:
        """`slots` is the maximum number of simultaneous requests, by default `rules.concurrency`."""
        self._rules = rules
        self._pace = pace
        self._rng = rng
        self._metrics = metrics
        self._slow_pages = 0  # pages that took too long to read, minus the others
        self.gate = Gate(slots or rules.concurrency, open_at=state.next_at)
        self.crawl_delay = state.crawl_delay if pace.crawl_delay else 0.0
        self.failures = state.failures
        """Number of refusals in a row (429, 503, no connection), which determines the back-off."""
        self.site_error = state.error
        """Error of the last request to the site, or "" if the site answered."""
        self.rests_until = 0.0
        """The site gets no request before this time, UTC seconds, because it refused one or could not be reached."""

    def next_at(self, at: float) -> float:
        """Return when another process may send requests to the site if this process ends at `at`."""
        return self.gate.next_for_others(at, self.delay_s())

    def delay_s(self) -> float:
        """Return the shortest time between two requests that use the same slot, in seconds."""
        return max(self._rules.min_delay, min(self.crawl_delay, self._rules.max_delay))

    def obey(self, crawl_delay: float, *, at: float) -> None:
        """Apply the Crawl-delay of a robots.txt. The delay begins at the time `at`, when robots.txt was fetched."""
        self.crawl_delay = crawl_delay if self._pace.crawl_delay else 0.0
        self.gate.hold(at + min(self.crawl_delay, self._rules.max_delay))

    def landed(self, fetched: FetchResult, address: Gate) -> bool:
        """Process the end of a fetch, and give its slots back to the gates of the site and its address. Return whether
        the site refused the request.

        `address` is the gate that released the fetch, even if the site has moved to another address in the meantime.
        """
        rules = self._rules
        min_delay = rules.min_delay if self._pace.keeps_delay else 0.0
        wait = delay_after(
            fetched.seconds,
            min_delay=min_delay,
            factor=rules.delay_factor,
            crawl_delay=self.crawl_delay,
            max_delay=rules.max_delay,
        )
        self.gate.give(fetched.at + wait)
        address.give(fetched.at + min(wait, max(min_delay, rules.delay_factor * fetched.seconds)))
        if refuses(fetched.status, fetched.error):
            self.site_error = fetched.error or f"status {fetched.status}"
            self._rest(fetched)
            return True
        if fetched.status is not None:
            self.failures = 0
            self.site_error = ""
        return False

    def unasked(self, address: Gate, at: float) -> None:
        """Give back the slots of a fetch whose request was never sent."""
        self.gate.give(at)
        address.give(at)

    def unreachable(self, error: str, at: float) -> float:
        """Record that the site's host has no address. Return when the address may be looked up again."""
        self.failures += 1
        self.site_error = error
        return at + self.back_off_s(self.failures)

    def without_robots(self, error: str, failures: int, at: float) -> float:
        """Shut the gate because robots.txt could not be fetched, `failures` times in a row. Return when the gate opens
        again.
        """
        self.site_error = error
        rests_until = at + self.back_off_s(failures)
        self.gate.hold(rests_until)  # This also applies when an immediate URL activates the site earlier.
        return rests_until

    def back_off_s(self, failures: int) -> float:
        """Return the seconds to wait after `failures` failures in a row."""
        delay = self._rules.min_delay if self._pace.keeps_delay else 0.0
        return backoff(failures, base=max(1.0, 10.0 * delay), rng=self._rng)

    def slow_page(self, at: float) -> None:
        """Let the site wait because a page took too long to read. Each slow page of a site makes the site's next wait
        longer.
        """
        self._slow_pages += 1
        self.gate.hold(at + self.back_off_s(self._slow_pages))
        self._metrics.inc("ant/slow_pages")

    def ordinary_page(self) -> None:
        """Record that a page was read in time, which cancels out one slow page."""
        if self._slow_pages:
            self._slow_pages -= 1

    def join(self, state: SiteState) -> None:
        """Merge another state of the same site into this one. If a value differs between the two states, the value that
        delays requests longer is kept.
        """
        self.gate.hold(state.next_at)
        if state.failures:
            self.rests_until = max(self.rests_until, state.next_at)
        self.failures = max(self.failures, state.failures)
        self.site_error = self.site_error or state.error
        self.crawl_delay = max(self.crawl_delay, state.crawl_delay)

    def _rest(self, fetched: FetchResult) -> None:
        """Shut the gate after a refusal, for the longer of two times: the Retry-After of the answer and the back-off.

        After a refused fetch of robots.txt or a sitemap, the back-off always applies.
        """
        pace, site = self._pace, fetched.fetch.site
        asked = backed_off = 0.0
        if pace.back_off or fetched.fetch.kind != "page":
            self.failures += 1
            backed_off = self.back_off_s(self.failures)
            self._metrics.inc("politeness/backed_off")
        if pace.retry_after and fetched.header("retry-after") is not None:
            self._metrics.inc("politeness/retry_after")
            asked = retry_after(fetched.header("retry-after"), at=fetched.at)
        if rest := max(asked, backed_off):
            self.rests_until = fetched.at + rest
            self.gate.hold(self.rests_until)
            pace.report(site, "Retry-After" if asked >= backed_off else "back-off", rest)


def delay_after(seconds: float, *, min_delay: float, factor: float, crawl_delay: float, max_delay: float) -> float:
    """Return the seconds to wait after a request that took `seconds`."""
    return max(min_delay, min(max(factor * seconds, crawl_delay), max_delay))


def refuses(status: int | None, error: str | None) -> bool:
    """Return whether an answer refuses requests (RFC 6585, RFC 9110 section 15.6.4) or is missing or incomplete."""
    return status in (429, 503) or error in SITE_ERRORS or error == "cut"


def backoff(failures: int, *, base: float, rng: random.Random) -> float:
    """Return the seconds to wait after the `failures`-th refusal in a row (1, 2, …). The first wait is `base`, and each
    further refusal doubles it. Each wait is up to 25 % longer or shorter at random.
    """
    doubled = base * 2.0 ** min(failures - 1, 40)
    return min(doubled, LONGEST_BACKOFF_S) * rng.uniform(0.75, 1.25)


def retry_after(value: str | None, *, at: float) -> float:
    """Return the seconds that a Retry-After header requests, as a number or a date. Return 0 if the header is absent or
    invalid, or if its date is past.
    """
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
