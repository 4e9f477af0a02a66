"""Conditions of ``[[switch]]``: they decide whether a fetched page moves to another policy.

The keys of the conditions are in `tables.WhenTable`. Some facts need extra work, such as the language, so they are
computed only if a ``[[switch]]`` uses them (`asked_for`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.policy.tables import SwitchTable

__all__ = ["PageFacts", "asked_for", "meets"]


class PageFacts(msgspec.Struct, frozen=True):
    """The facts of a fetched page that the conditions of ``[[switch]]`` can use. Facts that no ``[[switch]]`` uses keep
    their default values.

    - `language`, `similarity`: None if unknown.
    - `duplicates`: share of duplicates among the fetched pages of the site.
    - `followed`: number of fetched pages that were discovered through this page. This fact and the next are known later
      than the others, and are then given alone.
    - `switched`: policy -> how many of the followed pages were moved to it.
    """

    status: int | None = None
    text: str = ""
    language: str | None = None
    similarity: float | None = None
    duplicates: float = 0.0
    followed: int = 0
    switched: Mapping[str, int] = {}


def asked_for(switches: Sequence[SwitchTable]) -> Iterator[str]:
    """Yield the names of the facts that some ``[[switch]]`` uses, except status and text, which are always known."""
    for when in (rule.when for rule in switches):
        if when.language or when.language_not:
            yield "language"
        if when.similarity is not None or when.similarity_below is not None:
            yield "similarity"
        if when.duplicates is not None:
            yield "duplicates"
        if when.discovered is not None:
            yield "discovered"


def meets(rule: SwitchTable, seen: PageFacts) -> bool:
    when, language, similarity = rule.when, seen.language, seen.similarity
    return (
        (when.status is None or when.status == seen.status)
        and (not when.language or language in when.language)
        and (not when.language_not or (language is not None and language not in when.language_not))
        and (when.similarity is None or (similarity is not None and similarity >= when.similarity))
        and (when.similarity_below is None or (similarity is not None and similarity < when.similarity_below))
        and (when.duplicates is None or seen.duplicates >= when.duplicates)
        and (when.text is None or when.text.occurs(seen.text, when.count))
        and (when.discovered is None or _leads_to(rule, seen))
    )


def _leads_to(rule: SwitchTable, seen: PageFacts) -> bool:
    """Return whether enough of the pages that were discovered through a page have been moved to the rule's policy.

    Source: Krishnan, Raj 2006 (Anti-TrustRank: distrust flows from a page to the pages that link to it). Deviation from
    Anti-TrustRank: only a page through which enough bad pages were discovered loses trust. For example, a guestbook to
    which spammers have added a few links stays trusted.
    """
    bad = seen.switched.get(rule.to, 0)
    return bad >= rule.when.count and bad >= (rule.when.discovered or 0.0) * seen.followed
