"""The judge: whether a URL belongs to the collection, and the word to count when it does not.

Place in the walk: between `urls.canonical` and the host splitter. Everything is compiled once; a site's scope
is decided once. The verdict depends on the URL, its depth and the page that links it alone, so it can be asked
again for URLs that were queued under an older policy file. The spider traps are told in `traps`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal

from webfountain.policy.traps import is_off_calendar, is_repeated, leaves_calendar
from webfountain.urls import host_of, registered_domain, site_of

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.policy.files import Collection

__all__ = ["REASONS", "Judge", "Reason"]

Reason = Literal["out_of_scope", "denied", "not_allowed", "too_deep", "too_long", "trap_repeated", "trap_calendar"]
REASONS: Final[tuple[Reason, ...]] = (
    "out_of_scope",
    "denied",
    "not_allowed",
    "too_deep",
    "too_long",
    "trap_repeated",
    "trap_calendar",
)

_SCOPE_MEMO: Final = 65_536
_URL_MEMO: Final = 16_384
"""Sites' template links come on every page: about 4 MB save three quarters of the work."""
_DATED: Final = "trap_calendar"
"""Of a URL alone: no flaw but on some pages."""
_LEAST_SLASHES: Final = 3
"""Of ``scheme://host/``: a path of n segments has this many and n - 1."""


class Judge:
    """Judges by one collection; `year` is the present one, for calendars."""

    __slots__ = (
        "_allow",
        "_deny",
        "_depth",
        "_domains",
        "_flaw",
        "_in_scope",
        "_last_year",
        "_longest",
        "_most",
        "_sites",
    )

    def __init__(self, collection: Collection, *, year: int) -> None:
        discovery, policy = collection.discovery, collection.policy
        self._depth = collection.depth
        self._longest = discovery.max_url_length
        self._most = discovery.max_repeated_segments
        self._last_year = year + discovery.calendar_years
        self._allow = _any_of(policy.allow)
        self._deny = _any_of(policy.deny)
        self._sites = frozenset(map(site_of, collection.seeds())) if collection.scope == "site" else frozenset()
        self._domains = _domains(collection.seeds()) if collection.scope == "domain" else frozenset()
        self._in_scope = self._scope_rule(collection.scope)
        self._flaw = functools.lru_cache(_URL_MEMO)(self._find_flaw)

    def _scope_rule(self, scope: str) -> Callable[[str], bool]:
        if scope == "site":
            return self._sites.__contains__
        if scope == "any":
            return _anywhere
        return functools.lru_cache(_SCOPE_MEMO)(self._on_seed_domain)

    def _on_seed_domain(self, site: str) -> bool:
        return registered_domain(host_of(site)) in self._domains

    def judge(self, url: str, site: str, depth: int, *, source: str = "") -> Reason | None:
        """None when canonical `url` belongs to the collection, else why not.

        A seed (depth 0) needs no allow pattern: the operator named it, often as a mere way in; deny binds it too.
        `depth` is its own, one more than that of its source; `source` the canonical URL of the linking page,
        "" for seeds, sitemaps, redirects and URLs known before.
        """
        if not self._in_scope(site):
            return "out_of_scope"
        if depth > self._depth:
            return "too_deep"
        flaw = self._flaw(url)
        if flaw == "not_allowed" and depth == 0:
            return None
        return self._step(url, source) if flaw is _DATED else flaw

    def _find_flaw(self, url: str) -> Reason | None:
        """What is wrong with the URL alone; _DATED when that hangs on the page that links it."""
        if len(url) > self._longest:
            return "too_long"
        if self._deny is not None and self._deny(url):
            return "denied"
        if self._allow is not None and not self._allow(url):
            return "not_allowed"
        most = self._most
        # Counting is four times as fast as splitting, and most URLs are too short for a loop.
        if (url.count("/") >= _LEAST_SLASHES + most or url.count("&") >= most) and is_repeated(url, most):
            return "trap_repeated"
        return _DATED if is_off_calendar(url, last_year=self._last_year) else None

    def _step(self, url: str, source: str) -> Reason | None:
        return "trap_calendar" if source and leaves_calendar(url, source, last_year=self._last_year) else None

    def judge_links(
        self, urls: Sequence[str], *, depth: int, source: str, count: Callable[[str, int], object]
    ) -> list[tuple[str, str]]:
        """(url, site) of those links of one page that belong to the collection, in order.

        The others are counted by ``count("judge/" + reason, how_many)``.
        """
        kept: list[tuple[str, str]] = []
        refused: dict[str, int] = {}
        in_scope, find_flaw, deep = self._in_scope, self._flaw, depth > self._depth
        for url in urls:
            site = url[: url.find("/", 8)]  # canonical: there is always a path
            flaw = ("too_deep" if deep else find_flaw(url)) if in_scope(site) else "out_of_scope"
            if flaw is _DATED:
                flaw = self._step(url, source)
            if flaw is None:
                kept.append((url, site))
            else:
                refused[flaw] = refused.get(flaw, 0) + 1
        for reason, many in refused.items():
            count(f"judge/{reason}", many)
        return kept


def _any_of(patterns: Sequence[re.Pattern[str]]) -> Callable[[str], object] | None:
    """A search for any of the patterns, None without one.

    They are asked one by one: joined into one alternation, group numbers and inline flags would change meaning.
    """
    searches = [pattern.search for pattern in patterns]
    if len(searches) <= 1:
        return searches[0] if searches else None
    return lambda url: any(search(url) for search in searches)


def _domains(seeds: Iterable[str]) -> frozenset[str]:
    return frozenset(registered_domain(host_of(url)) for url in seeds)


def _anywhere(_site: str) -> bool:
    return True
