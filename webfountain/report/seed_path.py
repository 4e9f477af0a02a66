"""The path of links from a seed to a page, as data and as sentences.

Each hop of the path says how its page was found and why the page has its policy (`policy.provenance`). Pages that an
old version of webfountain stored do not say how they were found or why they have their policy.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from webfountain.policy.judge import Origin
from webfountain.policy.lineage import parent_of
from webfountain.policy.provenance import Provenance, numbered
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["Hop", "PagePaths", "path_words", "seed_place"]

_MOST_HOPS: Final = 10_000
"""Maximum number of hops in a path, equal to the maximum of `collection.limits.depth`."""


class Hop(msgspec.Struct, frozen=True):
    """A page on the path of links from a seed.

    - `by`: seed, link, redirect, sitemap, now (a note), former-seed (no longer in the file), or unrecorded.
    - `inherited`: policy that today's rules give the page, by its seed line or its link.
    - `cause`: cause of its current policy (`policy.provenance.Cause`); `because` says it in words, if it is not just
      the link.
    - `rule`: key of the rule that was the cause, such as ``switch[0]``, if the policy file still has it.
    - `at`, `found`: times of the cause and of the discovery, UTC seconds.
    """

    url: str
    by: str
    depth: int
    policy: str
    trust: float
    inherited: str
    because: str | None = None
    cause: str | None = None
    rule: str | None = None
    at: float | None = None
    found: float | None = None


class PagePaths:
    """Finds the path from a seed to a page."""

    def __init__(self, store: FrontierStore, collection: Collection, judge: Judge) -> None:
        self._store = store
        self._collection = collection
        self._judge = judge
        tables = collection.tables
        self._switches = {number: f"switch[{place}]" for number, place in numbered(tables.switch).items()}
        self._rules = {number: f"rule[{place}]" for number, place in numbered(tables.rule).items()}

    def path(self, record: PageRecord) -> tuple[Hop, ...]:
        """Return the pages on the path from a seed to a page."""
        chain = [record, *self._parents(record)]
        chain.reverse()
        hops = [self._first_hop(chain[0])]
        hops += [self._hop(child, parent) for parent, child in itertools.pairwise(chain)]
        return tuple(hops)

    def _parents(self, record: PageRecord) -> Iterator[PageRecord]:
        met = {record.url}
        while (name := parent_of(record)) is not None and len(met) < _MOST_HOPS:
            parent = self._store.pages.get(*name)
            if parent is None or parent.url in met:
                return  # the parent was removed since, or the path is a loop
            met.add(parent.url)
            yield parent
            record = parent

    def _first_hop(self, record: PageRecord) -> Hop:
        """Return the first page of a path, with the way in which it was found."""
        judge, recorded = self._judge, Provenance.decode(record.provenance)
        named = seed_place(self._collection, record.url)
        by = "former-seed" if recorded.arrival == "seed" else str(recorded.arrival)
        if named is not None and not record.depth:
            return self._recorded(record, recorded, "seed", named[1])
        if by == "sitemap":
            origin = judge.sitemap(site_of(record.url), depth=record.depth)
            return self._recorded(record, recorded, by, judge.inherited(record.url, origin).policy)
        return self._recorded(record, recorded, by, record.policy)

    def _hop(self, record: PageRecord, parent: PageRecord) -> Hop:
        recorded = Provenance.decode(record.provenance)
        kind: Literal["redirect", "link"] = "redirect" if recorded.arrival == "redirect" else "link"
        before = Provenance.decode(parent.provenance)
        origin = Origin(kind, record.depth, parent.policy, parent.trust, parent.url, links=recorded.links)
        inherited = self._judge.inherited(record.url, origin).policy
        hop = self._recorded(record, recorded, recorded.arrival, inherited)
        was_earlier = before.cause == "switch" and before.at is not None and record.first_seen < before.at
        if recorded.cause == "found" and was_earlier and hop.because is not None:
            words = f"it was found before the page that links to it was switched to {parent.policy!r}"
            hop = msgspec.structs.replace(hop, because=words)
        return hop

    def _recorded(self, record: PageRecord, recorded: Provenance, by: str, inherited: str) -> Hop:
        is_recorded = recorded.arrival != "unrecorded" or recorded.cause != "found"
        at = (record.first_seen if recorded.at is None else float(recorded.at)) if is_recorded else None
        names = self._switches if recorded.cause == "switch" else self._rules
        return Hop(
            record.url,
            by,
            record.depth,
            record.policy,
            record.trust,
            inherited,
            because=self._because(record, recorded, inherited) if is_recorded else self._guess(record, inherited),
            cause=recorded.cause if is_recorded else None,
            rule=names.get(recorded.rule),
            at=at,
            found=at if recorded.cause == "conflict" else record.first_seen,
        )

    def _because(self, record: PageRecord, recorded: Provenance, inherited: str) -> str | None:
        """Return in words why a page has its policy, or None if it got the policy from its link or seed."""
        when = "" if recorded.at is None else f", {_spell(recorded.at)}"
        match recorded.cause:
            case "switch":
                rule = self._switches.get(recorded.rule, "a switch that the policy file no longer has")
                return f"switched from {inherited!r} by {rule}{when}"
            case "rule":
                return f"{self._rules.get(recorded.rule, 'a rule that the policy file no longer has')} gives it{when}"
            case "conflict":
                rule = self._collection.conflict
                how = "the conflict.rule at that time" if rule == "first" else f"conflict.rule = {rule!r}"
                return f"this link counts more than earlier ones ({how}){when}"
            case "followed":
                return f"the page that led to it was switched{when}"
            case "edit":
                return f"by an edit of the policy file{when}"
        return None if record.policy == inherited else "found under another version of the policy file"

    def _guess(self, record: PageRecord, inherited: str) -> str | None:
        """Return a guess at why a page's policy is not `inherited`, or None if it is."""
        if record.policy == inherited:
            return None
        rules = [f"switch[{n}]" for n, rule in enumerate(self._collection.tables.switch) if rule.to == record.policy]
        maybe = f"perhaps {' or '.join(rules)}" if record.state != "never-crawled" and rules else "the cause is unknown"
        return f"{maybe}; it was not recorded"


def seed_place(collection: Collection, url: str) -> tuple[str, str] | None:
    """Return the policy-file key or the seeds file that lists a canonical URL as a seed, and the seed's policy."""
    inline = len(collection.tables.collection.seeds)
    for number, (seed, policy) in enumerate(collection.seeds_with_policies()):
        if seed == url:
            place = f"collection.seeds[{number}]" if number < inline else str(collection.seeds_file)
            return place, policy
    return None


def path_words(path: tuple[Hop, ...]) -> Iterator[str]:
    """Return sentences about how a page was discovered."""
    first = path[0]
    begin = {
        "seed": "is a seed",
        "former-seed": "was a seed, which the policy file no longer names",
        "sitemap": "was named by a sitemap",
        "now": "was requested by `now`",
        "unrecorded": "was found in a way that was not recorded",
    }
    yield f"{first.url} {begin.get(first.by, 'was linked by a page that is no longer known')}."
    verbs = {"redirect": "It redirects to", "link": "It links to", "unrecorded": "It links or redirects to"}
    for hop in path:
        if hop is not first:
            when = "" if hop.found is None else f" (found {_spell(hop.found)})"
            yield f"{verbs.get(hop.by, 'It links to')} {hop.url}{when}."
        if hop.because is not None:
            yield f"This page has the policy {hop.policy!r} and trust {hop.trust:.3g}: {hop.because}."


def _spell(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
