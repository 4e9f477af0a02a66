"""The explanation of one URL, as data, with the facts and the sentences of which it is made.

The facts are the present verdicts of the judge, the site of the URL and the site's robots.txt. They are read from a
store, also beside the crawl that writes it, and nothing is changed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.formats.robots import RobotsRules, deciding_line
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.scope import kept_forms
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.policy.collection import Collection
    from webfountain.policy.url_rules import Reason
    from webfountain.report.page_path import Hop
    from webfountain.store.contract import FrontierStore

__all__ = ["Explanation", "Robots", "Rule", "UrlFacts", "UrlVerdict", "robots_words", "rule_behind", "verdict_words"]


class Rule(msgspec.Struct, frozen=True):
    """A key of the policy file, such as ``policies.favor.deny[1]``, and its value."""

    key: str
    value: Any


class UrlVerdict(msgspec.Struct, frozen=True):
    """The judge's verdict on the URL: its policy, the reason if it is refused, and the rule that decided."""

    policy: str
    reason: Reason | None
    rule: Rule | None


class Robots(msgspec.Struct, frozen=True):
    """The verdict of the site's robots.txt: `line` is the number of the deciding line, None if no rule matches.

    `allowed` is None if robots.txt was not read yet. `at` is the time of the last read, UTC seconds.
    """

    allowed: bool | None
    line: str | None = None
    number: int | None = None
    at: float | None = None


class Explanation(msgspec.Struct, frozen=True):
    """Everything that explains a URL. `why` contains it in sentences.

    `url` is the canonical form, or None. For an unknown URL, `verdicts` has one verdict for each policy that a link
    could give it. `alike` are known URLs that differ only slightly. `next_visit` is UTC seconds, or None if no visit
    is expected.
    """

    given: str
    url: str | None
    known: bool
    why: tuple[str, ...]
    page: dict[str, Any] | None = None
    path: tuple[Hop, ...] = ()
    verdicts: tuple[UrlVerdict, ...] = ()
    robots: Robots | None = None
    next_visit: float | None = None
    alike: tuple[str, ...] = ()


def rule_behind(collection: Collection, url: str, policy: str, reason: Reason | None) -> Rule | None:
    """Return the key that decided a verdict; None if no key did."""
    discovery, table = collection.discovery, collection.policies[policy]
    if reason is None:
        return _pattern(f"policies.{policy}.allow", table.allow, url)
    if reason == "denied":
        return _pattern(f"policies.{policy}.deny", table.deny, url)
    key, value = {
        "not_allowed": (f"policies.{policy}.allow", [pattern.pattern for pattern in table.allow]),
        "not_followed": (f"policies.{policy}.follow", table.follow),
        "out_of_scope": ("collection.scope", collection.scope),
        "too_deep": ("collection.limits.depth", collection.limits.depth),
        "too_long": ("discovery.max_url_length", discovery.max_url_length),
        "trap_repeated": ("discovery.max_repeated_segments", discovery.max_repeated_segments),
        "trap_calendar": ("discovery.calendar_years", discovery.calendar_years),
    }[reason]
    return Rule(key, value)


def _pattern(key: str, patterns: Any, url: str) -> Rule | None:
    """Return the first of some patterns that matches a URL."""
    found = (Rule(f"{key}[{n}]", pattern.pattern) for n, pattern in enumerate(patterns) if pattern.search(url))
    return next(found, None)


def verdict_words(verdict: UrlVerdict) -> str:
    words = {
        "denied": "a pattern denies it",
        "not_allowed": "no pattern allows it",
        "not_followed": "links under its policy are not followed",
        "out_of_scope": "its site is out of scope",
        "too_deep": "it is too many hops from a seed",
        "too_long": "it is too long",
        "trap_repeated": "it repeats a path segment or parameter too often (a trap)",
        "trap_calendar": "it is a calendar page too far in the past or future (a trap)",
    }
    rule = verdict.rule
    assert verdict.reason is not None
    return f"{words[verdict.reason]}" + ("" if rule is None else f" ({rule.key} = {rule.value!r})")


def robots_words(robots: Robots) -> str:
    if robots.line is None:
        return "robots.txt could not be read; until then no page of the site is fetched"
    return f"robots.txt refuses it (line {robots.number}: {robots.line})"


class UrlFacts:
    """One canonical URL in one collection, at `at` UTC seconds."""

    def __init__(self, store: FrontierStore, collection: Collection, url: str, *, at: float) -> None:
        self.store, self.collection = store, collection
        self.url, self.site, self.at = url, site_of(url), at
        self.judge = Judge(collection, year=time.gmtime(at).tm_year, forms=kept_forms(store.board))
        self.home = store.sites.get(self.site)
        """The record of its site, None if the site is unknown."""

    def verdict(self, origin: Origin, *, of: str | None = None) -> UrlVerdict:
        """Return the judge's verdict on the URL or on another one, and the key that decided."""
        url = of or self.url
        [found] = self.judge.judge([url], origin)
        return UrlVerdict(found.policy, found.reason, rule_behind(self.collection, url, found.policy, found.reason))

    def robots(self) -> Robots:
        """Return the verdict of the newest robots.txt of the site in the store."""
        home = self.home
        if home is None or home.state.robots_at is None:
            return Robots(None)
        state = home.state
        if not state.robots_ok:
            return Robots(False, at=state.robots_at)
        body, token = state.robots or b"", self.collection.politeness.robots_token
        allowed = RobotsRules.parse(body, token).allowed(self.url)
        line = deciding_line(body, token, self.url)
        return Robots(allowed, None if line is None else line.text, line and line.number, state.robots_at)

    def form_words(self, given: str) -> Iterator[str]:
        """Yield a sentence if the canonical form differs from the given URL."""
        if given != self.url:
            yield f"Its canonical form is {self.url}."
