"""The rules of one policy for a single URL: whether it is allowed, or the first reason to refuse it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from webfountain.policy.patterns import any_of, any_of_lines
from webfountain.policy.traps import has_year, is_off_calendar, is_repeated, leaves_calendar
from webfountain.urls import host_of, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.policy.tables import PolicyTable

__all__ = ["DATED", "REASONS", "Reason", "UrlRules", "Verdict", "anywhere"]

Reason = Literal[
    "out_of_scope",
    "denied",
    "not_allowed",
    "too_deep",
    "too_long",
    "trap_repeated",
    "trap_calendar",
    "not_followed",
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

_URL_MEMO: Final = 16_384
"""Number of cached URLs. The links of a site's template are on every page: caching them takes about 4 MB and saves
three quarters of the work if URLs are checked one by one.
"""
DATED: Final = "trap_calendar"
"""Result for a URL with a date outside the limits, which is refused only if the linking page is part of the
calendar.
"""
_LEAST_SLASHES: Final = 3
"""Number of slashes in ``scheme://host/``. A URL whose path has n segments has n - 1 more."""


class Verdict(NamedTuple):
    """Verdict on a URL: its policy, its trust (0 to 1), and the reason if it is refused, else None.

    `rule` is the number of the ``[[rule]]`` that gave policy and trust (`policy.provenance`), b"" without a rule.
    """

    policy: str
    trust: float
    reason: Reason | None
    rule: bytes = b""


class UrlRules:
    """One compiled policy: reasons to refuse a URL, and how far the policy spreads."""

    def __init__(
        self,
        name: str,
        table: PolicyTable,
        *,
        domain_of: Callable[[str], str],
        longest: int,
        most: int,
        last_year: int,
    ) -> None:
        self.name = name
        self.table = table
        self._domain_of = domain_of
        self.refused = {reason: Verdict(name, 0.0, reason) for reason in REASONS}
        self._longest = longest
        self._most = most
        self._last_year = last_year
        self._allow = any_of(table.allow)
        self._deny = any_of(table.deny)
        self._denies_some = any_of_lines(table.deny)
        self._flaw = functools.lru_cache(_URL_MEMO)(self._find_flaw)

    def flaws(self, urls: Sequence[str]) -> list[Reason | None]:
        """Return for each URL the reason to refuse it, None if there is none."""
        if self._allow is None and self._are_plain(urls):
            return [None] * len(urls)
        return list(map(self._flaw, urls))

    def _are_plain(self, urls: Sequence[str]) -> bool:
        """Return whether all URLs are free of flaws, except that an allow pattern may be missing.

        All URLs are searched together. On most pages all are free of flaws, and looking each up in a cache larger than
        the processor's would cost more.
        """
        together, most = "\n".join(urls), self._most
        return (
            together.count("&") < most
            and not has_year(together)
            and max([url.count("/") for url in urls], default=0) < _LEAST_SLASHES + most
            and (len(together) <= self._longest or max(map(len, urls)) <= self._longest)
            and not self._denies_some(together)
        )

    def _find_flaw(self, url: str) -> Reason | None:
        """Return the reason to refuse a URL, or DATED if that depends on the linking page."""
        if len(url) > self._longest:
            return "too_long"
        if self._deny is not None and self._deny(url):
            return "denied"
        if self._allow is not None and not self._allow(url):
            return "not_allowed"
        most = self._most
        # Counting is four times as fast as splitting, and most URLs are too short to contain a loop.
        if (url.count("/") >= _LEAST_SLASHES + most or url.count("&") >= most) and is_repeated(url, most):
            return "trap_repeated"
        return DATED if is_off_calendar(url, last_year=self._last_year) else None

    def step(self, url: str, source: str) -> Reason | None:
        """Return "trap_calendar" if the link leaves a calendar, else None."""
        return "trap_calendar" if source and leaves_calendar(url, source, last_year=self._last_year) else None

    def reach(self, source: str) -> Callable[[str], bool]:
        """Return a function that checks whether a site is within the policy's spread from the page `source`."""
        if self.table.spread == "any" or not source:
            return anywhere
        home = site_of(source)
        if self.table.spread == "site":
            return home.__eq__
        domain_of = self._domain_of
        domain = domain_of(host_of(home))
        return lambda site: site == home or domain_of(host_of(site)) == domain


def anywhere(_site: str) -> bool:
    return True
