"""What policies and robots.txt decide about one URL, as data and as sentences.

The decisions follow from the policy file and from the site's record in the store, even during a crawl. An `Explanation`
contains the decisions, and the path of links from a seed (`seed_path`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.formats.robots import RobotsRules, deciding_line
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.scope import kept_forms
from webfountain.report.seed_path import Hop  # noqa: TC001  # msgspec reads it from the annotations
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.policy.collection import Collection
    from webfountain.policy.url_rules import Reason
    from webfountain.store.contract import FrontierStore

__all__ = [
    "Explanation",
    "Robots",
    "Rule",
    "UrlFacts",
    "UrlVerdict",
    "robots_refusal_words",
    "rule_behind",
    "verdict_words",
]


class Rule(msgspec.Struct, frozen=True):
    """A key of the policy file, such as ``policies.favor.deny[1]``, and its value."""

    key: str
    value: Any


class UrlVerdict(msgspec.Struct, frozen=True):
    """The decision about a URL: its policy, the reason if the URL is refused, and the deciding key of the policy
    file."""

    policy: str
    reason: Reason | None
    rule: Rule | None


class Robots(msgspec.Struct, frozen=True):
    """What the robots.txt of the site decides about the URL.

    - `allowed`: None if robots.txt was not read yet.
    - `line`, `number`: text and number of the deciding line; None if no rule matches.
    - `at`: time of the last read, UTC seconds.
    """

    allowed: bool | None
    line: str | None = None
    number: int | None = None
    at: float | None = None


class Explanation(msgspec.Struct, frozen=True):
    """The explanation of a URL.

    `why` contains the explanation in sentences.

    - `url`: canonical form, or None.
    - `verdicts`: for an unknown URL, the verdict under each policy that a link could give it.
    - `alike`: known URLs that differ only slightly.
    - `next_visit`: UTC seconds; None if no visit is expected.
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
    """Return which key of the policy file decided about a URL, or None if no key did."""
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
    """Return the first pattern that matches a URL, with its key in the policy file."""
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


def robots_refusal_words(robots: Robots) -> str:
    if robots.line is None:
        return "robots.txt could not be read; until then no page of the site is fetched"
    return f"robots.txt refuses it (line {robots.number}: {robots.line})"


class UrlFacts:
    """The facts about one canonical URL in one collection at the time `at`, UTC seconds."""

    def __init__(self, store: FrontierStore, collection: Collection, url: str, *, at: float) -> None:
        self.store, self.collection = store, collection
        self.url, self.site, self.at = url, site_of(url), at
        self.judge = Judge(collection, year=time.gmtime(at).tm_year, forms=kept_forms(store.board))
        self.home = store.sites.get(self.site)
        """The record of the URL's site, or None if the site is unknown."""

    def verdict(self, origin: Origin, *, of: str | None = None) -> UrlVerdict:
        """Return the decision of the policy file about the URL `of`, or about `self.url` if `of` is None."""
        url = of or self.url
        [found] = self.judge.judge([url], origin)
        return UrlVerdict(found.policy, found.reason, rule_behind(self.collection, url, found.policy, found.reason))

    def robots(self) -> Robots:
        """Return what the newest stored robots.txt of the site decides about the URL."""
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
        """Yield a sentence about the canonical form of the URL, if it differs from the given text."""
        if given != self.url:
            yield f"Its canonical form is {self.url}."
