"""Rules by host or URL: a ``[[rule]]`` gives policy and trust to matching pages, whichever page links to them.

A rule replaces the policy that a page inherits from the page that links to it. With rules, a user can trust good
domains that are not seeds (Policies 2006, Krugler's hand-picked domains), and distrust bad domains. A rule does not
widen the scope of the collection. A page that a rule matches must pass the allow and deny patterns of its new policy.
If several rules match a page, the first rule in the file applies. No rule replaces the policy named in a seed's line.

`match` is a host or a regular expression. ``example.org`` is only that host; ``*.example.org`` is that host and all
hosts below it. A regular expression is searched in the canonical URL. If `match` is a list, one of its entries must
match.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.errors import UrlError
from webfountain.policy.patterns import compile_pattern
from webfountain.policy.provenance import rule_number
from webfountain.urls import canonical, host_of, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.policy.tables import RuleTable

__all__ = ["PageRule", "RuleBook", "host_pattern", "spell_rule"]

_LABEL: Final = r"[^\W_](?:[\w-]*[^\W_])?"
_HOST: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\]")
_MEMO: Final = 65_536
"""Number of sites whose rules are cached."""


class PageRule(NamedTuple):
    """A ``[[rule]]`` that matches a page. `place` is the position of the rule in the file. If `policy` is None, the
    page keeps the inherited policy. If `trust` is None, the page gets the trust of its policy.
    """

    number: bytes
    place: int
    policy: str | None
    trust: float | None


class _Candidate(NamedTuple):
    """A rule that may match pages of a site. `search` says whether the rule matches a URL.

    If `search` is None, the rule matches all URLs of the site.
    """

    rule: PageRule
    search: Callable[[str], object] | None


class RuleBook:
    """The compiled rules of a collection."""

    def __init__(self, rules: Sequence[RuleTable]) -> None:
        self._matches: list[tuple[str | None, _Candidate]] = []
        for place, table in enumerate(rules):
            rule = PageRule(rule_number(table), place, table.policy, table.trust)
            for match in table.matches:
                host = host_pattern(match)
                search = compile_pattern(match).search if host is None else None
                self._matches.append((host, _Candidate(rule, search)))
        self._candidates = functools.lru_cache(_MEMO)(self._find_candidates)

    def __bool__(self) -> bool:
        return bool(self._matches)

    def find(self, url: str) -> PageRule | None:
        """Return the first rule that matches a canonical URL, or None."""
        for rule, search in self._candidates(site_of(url)):
            if search is None or search(url):
                return rule
        return None

    def _find_candidates(self, site: str) -> tuple[_Candidate, ...]:
        """Return the rules that may match pages of a site, in order, up to the first rule that matches all pages of the
        site.
        """
        host, found = host_of(site), []
        for pattern, candidate in self._matches:
            if pattern is not None and not _covers(pattern, host):
                continue
            found.append(candidate)
            if candidate.search is None:
                break
        return tuple(found)


def host_pattern(match: str) -> str | None:
    """Return the canonical form of a host such as ``example.org`` or ``*.example.org``. Return None if `match` is not a
    host.
    """
    if _HOST.fullmatch(match) is None:
        return None
    wildcard = "*." if match.startswith("*.") else ""
    try:
        return wildcard + host_of(canonical(f"http://{match.removeprefix('*.')}/"))
    except UrlError:
        return None


def spell_rule(table: RuleTable) -> str:
    """Return a short text that describes a rule."""
    given = [] if table.policy is None else [table.policy]
    given += [] if table.trust is None else [f"trust {table.trust:g}"]
    return f"{' | '.join(table.matches)} -> {', '.join(given)}"


def _covers(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host == pattern[2:] or host.endswith(pattern[1:])
    return host == pattern
