"""Rules by host or URL: a ``[[rule]]`` gives policy and trust to matching pages, whichever page links to them.

Place in the walk: the judge applies rules after a link has inherited its policy (`policy.judge`). A rule replaces what
the page inherits. So known good domains are trusted without being seeds (Policies 2006, Krugler's hand-picked domains),
and known bad ones are distrusted, however they are found. A rule does not widen the scope, and the patterns of the
given policy still apply to the page. The first matching rule of the file counts. A seed whose line names a policy keeps
that policy.

`match` is a host (``example.org``: only that host; ``*.example.org``: it and all hosts below it) or a regular
expression that is searched in the canonical URL. A list matches if one of its entries does.
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
    """A rule that matched: its number, its place in the file, and its policy and trust. None means that the page keeps
    what it inherits."""

    number: bytes
    place: int
    policy: str | None
    trust: float | None


class _Candidate(NamedTuple):
    """A rule that may match pages of a site. It matches the URLs in which `search` finds something, or all if there is
    no `search`."""

    rule: PageRule
    search: Callable[[str], object] | None


class RuleBook:
    """The compiled rules of a collection. `find` costs one look-up if no rule concerns the site."""

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
        """Return the first rule for a canonical URL, or None if there is none."""
        for rule, search in self._candidates(site_of(url)):
            if search is None or search(url):
                return rule
        return None

    def _find_candidates(self, site: str) -> tuple[_Candidate, ...]:
        """Return the rules that may match pages of a site, in order, up to the first that matches all of them."""
        host, found = host_of(site), []
        for pattern, candidate in self._matches:
            if pattern is not None and not _covers(pattern, host):
                continue
            found.append(candidate)
            if candidate.search is None:
                break
        return tuple(found)


def host_pattern(match: str) -> str | None:
    """Return a host in its canonical form, with ``*.`` if that was written, or None if the pattern is not a host."""
    if _HOST.fullmatch(match) is None:
        return None
    wildcard = "*." if match.startswith("*.") else ""
    try:
        return wildcard + host_of(canonical(f"http://{match.removeprefix('*.')}/"))
    except UrlError:
        return None


def spell_rule(table: RuleTable) -> str:
    """Return a rule in a few words, for people."""
    given = [] if table.policy is None else [table.policy]
    given += [] if table.trust is None else [f"trust {table.trust:g}"]
    return f"{' | '.join(table.matches)} -> {', '.join(given)}"


def _covers(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host == pattern[2:] or host.endswith(pattern[1:])
    return host == pattern
