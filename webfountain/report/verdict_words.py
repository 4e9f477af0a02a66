"""Write verdicts on a URL as sentences, with the policy key or the robots.txt line that decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webfountain.report.explanation import Rule

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection
    from webfountain.policy.url_rules import Reason
    from webfountain.report.explanation import Robots, UrlVerdict

__all__ = ["robots_words", "rule_behind", "verdict_words"]


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
