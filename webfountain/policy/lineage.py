"""Compute policy and trust of known pages from a policy file, starting at the seeds and following the recorded links.

After an edit of the policy file, `frontier.pages.policy_review` moves pages to the policies that this module computes,
while the crawl continues. Before an edit, `policy check --against` uses this module to count the pages that would move.

Each page was discovered in one way (`policy.provenance`): as a seed, by a link or redirect of one page
(`PageRecord.source`), by a sitemap, or by a user's request. Known pages form trees: the parent of a page is the page
through which it was discovered. The policy, trust and depth of a page follow from those of its parent, by the judge's
rules for links:

1. A seed of the file has the policy of its line, the trust of that policy, and depth 0.
2. A linked page inherits from its parent. If the parent divides its trust among its links, the same division is made
   again.
3. A ``[[rule]]`` for the page's URL or host replaces policy and trust.
4. If a ``[[switch]]`` moved the page when it was fetched, it moves the page now, provided that the file still has this
   rule. Links found before the switch inherit the page's earlier policy, unless the rule contains
   `also = "discovered"`.
5. A page stays as it is if it has another origin, or if its parent was forgotten.

Records of earlier versions of webfountain do not say how a page was discovered, so the origin of the page is guessed.
If a page's record does not say how many links shared its parent's trust, the page's trust is never raised.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from math import isclose
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
import xxhash

from webfountain.policy.judge import Origin
from webfountain.policy.provenance import Provenance, numbered, rule_number
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.policy.url_rules import Verdict
    from webfountain.records import PageRecord

__all__ = ["Lineage", "PageName", "parent_of", "spreading"]

PageName = tuple[str, bytes]
"""Site and key of a page."""
_KEY_BYTES: Final = len(fingerprint(""))
_REMEMBERED: Final = 50_000
"""Maximum number of parent pages whose policy, trust and depth are cached; each takes about 300 bytes."""
_SAME: Final = 1e-9
"""Two values of trust count as equal if they differ by less than this fraction."""


def spreading(collection: Collection, seeds: bytes) -> bytes:
    """Return a hash of everything that decides the policy and trust of known pages. `seeds` is the content of the seeds
    file. If the hash is unchanged after an edit, no known page gets another policy.
    """
    tables = collection.tables
    policies = {
        name: (table.trust, table.dampening, table.splitting, table.spread, table.otherwise, table.follow)
        for name, table in sorted(collection.policies.items())
    }
    lines = [(url, policy or "") for url, policy in collection.seed_lines_of_file()]
    rules = [rule_number(rule) for rule in (*tables.rule, *tables.switch)]
    recorded = msgspec.json.encode((tables.collection.policy, policies, lines, [number.hex() for number in rules]))
    return xxhash.xxh3_64_digest(recorded + b"\0" + seeds)


def parent_of(record: PageRecord) -> PageName | None:
    """Return the page through which a page was discovered, or None."""
    key = record.source[:_KEY_BYTES]
    return (record.source[_KEY_BYTES:].decode() or site_of(record.url), key) if key else None


class _Seeds:
    """Finds the policy of a seed by its URL. Each line of a seeds file takes eight bytes of memory."""

    def __init__(self, collection: Collection) -> None:
        self._lines = dict(collection.seed_lines_of_file())
        rest = (url for url, _ in collection.seed_lines() if url not in self._lines)
        self._rest = array("Q", sorted(int.from_bytes(fingerprint(url), "big") for url in rest))

    def __contains__(self, url: str) -> bool:
        if url in self._lines:
            return True
        number = int.from_bytes(fingerprint(url), "big")
        place = bisect_left(self._rest, number)
        return place < len(self._rest) and self._rest[place] == number

    def policy(self, url: str) -> str | None:
        """Return the policy named in a seed's line, or None."""
        return self._lines.get(url)


class _PageStanding(NamedTuple):
    """The computed policy, trust and depth of a page. `inherited` is the policy and trust before any ``[[switch]]``.
    `switched_at` is the time at which a ``[[switch]]`` moved the page, or None.
    """

    inherited: Verdict
    policy: str
    trust: float
    depth: int
    switched_at: float | None = None

    def passes_on(self, child: PageRecord, recorded: Provenance) -> tuple[str, float]:
        """Return the policy and trust that a child of this page inherits."""
        found = recorded.at if recorded.cause == "conflict" and recorded.at is not None else child.first_seen
        if self.switched_at is not None and found < self.switched_at and recorded.cause != "followed":
            return self.inherited.policy, self.inherited.trust
        return self.policy, self.trust


class Lineage:
    """Computes the policy, trust and depth of known pages under one collection. `page` returns the record of a known
    page, or None for an unknown page.
    """

    def __init__(self, collection: Collection, judge: Judge, page: Callable[[str, bytes], PageRecord | None]) -> None:
        self._judge = judge
        self._page = page
        self._seeds = _Seeds(collection)
        self._switches = [(rule_number(rule), rule) for rule in collection.tables.switch]
        self._rules = numbered(collection.tables.rule)
        self._targets = frozenset(rule.to for rule in collection.tables.switch)
        self._standings: OrderedDict[PageName, _PageStanding] = OrderedDict()
        self._cut: set[PageName] = set()  # pages at which a cycle of sources was cut

    def clear(self) -> None:
        """Clear the cache, because the pages may have changed."""
        self._standings.clear()
        self._cut.clear()

    def missing(self, records: Iterable[PageRecord]) -> set[PageName]:
        """Return the parent pages whose records must be read before `revised` can compute `records`."""
        parents = (parent_of(record) for record in records if record.request is None)
        return {name for name in parents if name is not None and name not in self._standings}

    def revised(self, record: PageRecord, *, at: float) -> PageRecord | None:
        """Return a page's record with its new policy, trust and depth, or None if the record does not change. `at` is
        the time at which the policy changes, UTC seconds.
        """
        if record.request is not None:
            return None
        standing = self._standing(record)
        recorded = Provenance.decode(record.provenance)
        joins = record.url in self._seeds and (bool(record.source) or record.depth > 0)
        is_same = standing.policy == record.policy and isclose(standing.trust, record.trust, rel_tol=_SAME)
        if is_same and standing.depth == record.depth and not joins:
            return None
        return msgspec.structs.replace(
            record,
            policy=standing.policy,
            trust=standing.trust,
            depth=standing.depth,
            importance=self._importance(record, standing.trust),
            source=b"" if joins else record.source,
            provenance=self._recorded(recorded, standing, is_seed=joins, is_same=is_same, at=at).encode(),
        )

    def _importance(self, record: PageRecord, trust: float) -> float:
        """Return the importance of a page. Even if pages are ranked, a never-crawled page without trust has importance
        0.
        """
        if record.state == "never-crawled" and not trust:
            return 0.0
        return self._judge.importance_of(record, trust)

    def _recorded(
        self, recorded: Provenance, standing: _PageStanding, *, is_seed: bool, is_same: bool, at: float
    ) -> Provenance:
        if is_seed:
            recorded = msgspec.structs.replace(recorded, arrival="seed", links=0)
        if recorded.cause == "switch" and standing.switched_at is not None:
            return recorded
        if rule := standing.inherited.rule:
            return (
                recorded
                if (recorded.cause, recorded.rule) == ("rule", rule)
                else recorded.because("rule", at=at, rule=rule)
            )
        if recorded.cause in ("conflict", "followed") and not is_seed:
            return recorded
        return recorded if is_same and not is_seed and not recorded.rule else recorded.because("edit", at=at)

    # --------------------------------------------------------------- the tree

    def _standing(self, record: PageRecord) -> _PageStanding:
        """Compute the policy, trust and depth of a page, starting at the oldest ancestor that is not cached."""
        while (chain := self._chain(record)) is None:
            pass  # a cycle was cut
        top = self._standings.get(name) if (name := parent_of(chain[-1])) is not None else None
        if chain[-1].url in self._seeds or _name_of(chain[-1]) in self._cut:
            top = None
        for each in reversed(chain[1:]):
            top = self._standings[_name_of(each)] = self._derived(each, top)
        while len(self._standings) > _REMEMBERED:
            self._standings.popitem(last=False)
        return self._derived(record, top)

    def _chain(self, record: PageRecord) -> list[PageRecord] | None:
        """Return the page and its ancestors, up to the first page that has no parent or a cached parent. If the
        ancestors form a cycle, cut the cycle and return None.
        """
        chain, names = [record], {_name_of(record)}
        while (above := self._above(chain[-1])) is not None:
            if _name_of(above) in names:
                circle = chain[[_name_of(each) for each in chain].index(_name_of(above)) :]
                self._cut.add(_name_of(min(circle, key=lambda each: (each.depth, each.url))))
                return None
            chain.append(above)
            names.add(_name_of(above))
        return chain

    def _above(self, record: PageRecord) -> PageRecord | None:
        """Return the parent of a page if the parent's policy must be computed first, else None."""
        name = parent_of(record)
        if name is None or name in self._standings or record.url in self._seeds or _name_of(record) in self._cut:
            return None
        return self._page(*name)

    # ------------------------------------------------------------ one step down

    def _derived(self, record: PageRecord, parent: _PageStanding | None) -> _PageStanding:
        recorded = Provenance.decode(record.provenance)
        verdict, depth = self._inherited(record, recorded, parent)
        if recorded.cause == "switch":
            rule = next((rule for number, rule in self._switches if number == recorded.rule), None)
            if rule is not None:
                trust = self._judge.trust_switched(verdict.policy, verdict.trust, to=rule.to)
                at = 0.0 if rule.also == "discovered" or recorded.at is None else float(recorded.at)
                return _PageStanding(verdict, rule.to, trust, depth, at)
        elif recorded.arrival == "unrecorded" and record.state != "never-crawled" and record.policy in self._targets:
            return _PageStanding(verdict, record.policy, record.trust, depth)  # a switch may have moved it
        return _PageStanding(verdict, verdict.policy, verdict.trust, depth)

    def _inherited(self, record: PageRecord, recorded: Provenance, parent: _PageStanding | None) -> tuple[Verdict, int]:
        """Return the policy, trust and depth that a page has before any ``[[switch]]``."""
        judge, url = self._judge, record.url
        if url in self._seeds:
            return judge.inherited(url, judge.seed(self._seeds.policy(url))), 0
        if parent is None:
            return self._rootless(record, recorded), record.depth
        is_redirect = recorded.arrival == "redirect" or (
            recorded.arrival == "unrecorded" and record.depth == parent.depth
        )
        depth = min(record.depth, parent.depth + (not is_redirect))
        policy, trust = parent.passes_on(record, recorded)
        kind: Literal["redirect", "link"] = "redirect" if is_redirect else "link"
        site = _parent_site(record)
        verdict = judge.inherited(url, Origin(kind, depth, policy, trust, site + "/", links=recorded.links))
        if (
            recorded.arrival == "unrecorded"
            and not is_redirect
            and judge.policies.rules[policy].table.splitting
            and record.trust
        ):
            verdict = verdict._replace(trust=min(verdict.trust, record.trust))
        return verdict, depth

    def _rootless(self, record: PageRecord, recorded: Provenance) -> Verdict:
        """Return the policy and trust of a page that is not a seed and has no known parent."""
        judge, url = self._judge, record.url
        if recorded.arrival == "sitemap" or (recorded.arrival == "unrecorded" and record.depth and not record.source):
            return judge.inherited(url, judge.sitemap(site_of(url), depth=record.depth))
        kept = judge.inherited(url, Origin("seed", record.depth, record.policy, record.trust))
        lost_its_rule = recorded.cause == "rule" and recorded.rule not in self._rules
        return judge.inherited(url, judge.seed(None)) if lost_its_rule and not kept.rule else kept


def _name_of(record: PageRecord) -> PageName:
    return site_of(record.url), fingerprint(record.url)


def _parent_site(record: PageRecord) -> str:
    name = parent_of(record)
    return site_of(record.url) if name is None else name[0]
