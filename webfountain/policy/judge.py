"""Decide whether a URL belongs to the collection, and which policy and trust the URL gets.

Each URL is judged when it is found, and again before it is fetched. URLs are judged in batches, each from one *origin*:
a seed list, a page's links, a redirect, a sitemap, or the queue. A verdict depends only on the collection, the URL and
the origin. URLs of one batch share verdict objects, because a crawl judges very many links.

How policy and trust spread from the seeds (Policies 2006, "Per-page crawling policy"):

1. A seed has the policy that its line names, else `collection.policy`. Its trust is that policy's `trust`.
2. A linked page inherits the policy within the policy's `spread` (the linking page's site, its registered domain,
   anywhere). Beyond the spread, the page gets the policy that `otherwise` names.
3. Each hop multiplies trust by `dampening`. With `splitting`, a page's trust is also divided among its accepted links
   (TrustRank's two attenuations; PAPERS.md section 6). If a link leads to another policy, the `trust` of that policy is
   the upper bound. So `otherwise = "distrust"` lowers the trust.
4. A ``[[rule]]`` for the URL or its host replaces policy and trust (`policy.rules`); the rule's trust is not divided.
5. After each fetch `switched` may move the page to another policy, which its later links inherit. A switch to a policy
   with more trust raises the page's trust to the trust of that policy. A switch to a policy with less trust limits the
   page's trust to it (`trust_switched`).
6. A URL that is found again keeps its first policy, or gets the one that the conflict rule selects.

After an edit of the policy file, `adopt` replaces the collection between two batches.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from webfountain.policy.counting import counting_rules
from webfountain.policy.provenance import arrived
from webfountain.policy.scope import is_site_form, scope_of
from webfountain.policy.switches import asked_for, meets
from webfountain.policy.url_rules import DATED, UrlRules, Verdict
from webfountain.records import Link
from webfountain.urls import fingerprint, network_domain, registered_domain, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.policy.collection import Collection
    from webfountain.policy.rules import PageRule
    from webfountain.policy.switches import PageFacts
    from webfountain.policy.tables import SwitchTable
    from webfountain.policy.url_rules import Reason
    from webfountain.records import PageRecord

__all__ = ["CompiledPolicies", "Judge", "Origin", "judge_again"]

_T = TypeVar("_T")


class Origin(msgspec.Struct, frozen=True):
    """Where the URLs of a batch, called candidates, were found.

    - `depth`: number of hops from a seed to the candidates.
    - `policy`, `trust`: those of the page that links to the candidates. For seeds and queued URLs they are the
      candidates' own.
    - `source`: canonical URL of the page that links to the candidates, or "".
    - `links`: number of links that share the trust of that page; 0 means the accepted links of the batch.
    - `is_named`: whether the seeds' lines name the policy. No ``[[rule]]`` changes it then.
    - `is_copied`: whether an earlier copy of that page was read for links.
    """

    kind: Literal["seed", "link", "redirect", "sitemap", "queued"]
    depth: int
    policy: str
    trust: float = 0.0
    source: str = ""
    links: int = 0
    is_named: bool = False
    is_copied: bool = False


class _ByPolicy(dict[str, _T]):
    """Values by the name of a policy; an unknown name has the value of the policy "default"."""

    def __missing__(self, policy: str) -> _T:
        return self["default"]


class CompiledPolicies:
    """The compiled rules of one collection. An edit of the policy file replaces all compiled rules at once, so that no
    batch is judged by two versions of the rules.

    - `rules`: for each policy, which URLs it refuses; `rules[policy].table` is the policy's table.
    - `counting`: for each policy, which differences count as a change.
    - `learns`: whether some policy learns which differences are noise.
    - `follows_topics`: for each policy, whether the texts of a page's links are needed, because the linked pages may
      have a policy with a topic.
    - `switches`: the ``[[switch]]`` tables, in order.
    - `asks`: those of the facts language, similarity, duplicates and discovered that some ``[[switch]]`` uses.
    - `is_trusting`: whether the importance of an unranked URL is its trust, not 0.
    """

    def __init__(self, collection: Collection, *, year: int) -> None:
        tables = collection.tables
        self.depth = collection.limits.depth
        self.standard = tables.collection.policy
        self.switches = tables.switch
        self.asks = frozenset(asked_for(tables.switch))
        self.is_trusting = collection.is_trusting
        self.is_ranking = collection.is_ranking
        revisits = [collection.policies[name].revisit for name in collection.policies_in_use]
        self.bounds = {(revisit.min_interval, revisit.max_interval) for revisit in revisits}
        self.scope = scope_of(collection)
        self.in_scope = self.scope.contains
        self.book = collection.rules if tables.rule else None
        self.site_policy: dict[str, str] = {}
        for url, policy in collection.named_seeds():
            self.site_policy.setdefault(site_of(url), policy)
        domain_of = network_domain if collection.network.allow_private else registered_domain
        topical = set(_with_topics(collection))
        self.follows_topics = _ByPolicy({name: name in topical for name in collection.policies})
        self.counting = _ByPolicy({name: counting_rules(collection, name) for name in collection.policies})
        self.learns = any(self.counting[name].learns for name in collection.policies_in_use)
        self.rules = _ByPolicy(
            {
                name: UrlRules(name, table, collection.discovery, domain_of=domain_of, year=year)
                for name, table in collection.policies.items()
            }
        )

    def outside(self, urls: Sequence[str], home: str) -> list[int]:
        """Return the indices of those canonical URLs whose sites are out of scope. `home` is the site of the page that
        links to them, or "".
        """
        in_scope = self.in_scope
        near = home + "/" if in_scope(home) else "/"  # no URL starts with "/"
        return [i for i, url in enumerate(urls) if not (url.startswith(near) or in_scope(site_of(url)))]


class Judge:
    """Judges URLs by the rules of one collection; may be called from any thread.

    - `year`: the current year, the reference for calendars.
    - `forms`: sites that replaced seeds' sites in an earlier run (`scope.kept_forms`).
    """

    def __init__(self, collection: Collection, *, year: int, forms: Mapping[str, str] | None = None) -> None:
        self._year = year
        self._forms: dict[str, str] = {}
        self.policies = CompiledPolicies(collection, year=year)
        """The policies in force. `adopt` replaces them."""
        self.admit_forms(forms or {})
        self._bounds_at_start = self.policies.bounds
        self.has_bounds = len(self._bounds_at_start) > 1
        """True if different policies have different bounds for the time between two fetches, or if an edit changed the
        bounds, because the schedules keep the old bounds until the next start.
        """

    def adopt(self, collection: Collection) -> None:
        """Replace the collection with an edited one. Batches that are already being judged keep the old collection."""
        self.policies = CompiledPolicies(collection, year=self._year)
        bounds = self.policies.bounds
        self.has_bounds = len(bounds) > 1 or bounds != self._bounds_at_start
        forms, self._forms = self._forms, {}
        self.admit_forms(forms)

    # -------------------------------------------------------- forms of sites

    def admit(self, site: str, *, seed: str) -> bool:
        """Add another form of a seed's site, such as https instead of http, to the scope, with the policy of the seed.
        The crawl calls this method when a seed redirects.

        Return False if `site` is already in scope, or is not a variant of the site `seed` with another scheme or
        ``www.``."""
        law = self.policies
        if law.in_scope(site) or not (law.in_scope(seed) and is_site_form(site, of=seed)):
            return False
        self._forms[site] = seed
        law.scope.admit(site)
        if (policy := law.site_policy.get(seed)) is not None:
            law.site_policy.setdefault(site, policy)
        return True

    def admit_forms(self, forms: Mapping[str, str]) -> None:
        """Add to the scope the sites to which seeds redirected an earlier run or another ant. A site is added only if
        the site that it replaced is still in scope.
        """
        left = dict(forms)
        while admitted := [site for site, seed in left.items() if self.admit(site, seed=seed)]:
            for site in admitted:
                del left[site]

    @property
    def forms(self) -> Mapping[str, str]:
        """The sites to which seeds have redirected, each mapped to the site that it replaced."""
        return self._forms

    # -------------------------------------------------------------- verdicts

    def judge(self, urls: Sequence[str], origin: Origin) -> list[Verdict]:
        """Return one verdict for each canonical URL, in order.

        Deny patterns apply to seeds, but allow patterns do not. If a page redirects, the target gets the whole trust of
        the page, because the target is the same page at another URL.
        """
        return _judge(self.policies, urls, origin, site_of(origin.source))

    def links(
        self, urls: Sequence[str], origin: Origin, *, hops: int = 0
    ) -> tuple[list[Link], list[tuple[str, Reason]]]:
        """Judge canonical URLs that were found. Return links to the accepted URLs, and each refused URL with the
        reason. `hops` is the number of consecutive redirects that led to the URLs.
        """
        assert origin.kind != "queued"
        law, kind, depth, source = self.policies, origin.kind, origin.depth, origin.source
        home = site_of(source)
        verdicts = _judge(law, urls, origin, home)
        shared = (origin.links or _accepted(verdicts)) if kind == "link" else 0
        links: list[Link] = []
        refused: list[tuple[str, Reason]] = []
        near = home + "/"
        sites: dict[str, str] = {}  # one string for all links of a site: later steps hash it only once
        last = None
        for url, judged in zip(urls, verdicts, strict=True):
            if judged is not last:  # nearly all links of a page get the same verdict
                last, (policy, trust, reason, rule) = judged, judged
                worth = trust if law.is_trusting else 0.0
                provenance = arrived(kind, rule=rule, links=shared, is_added=origin.is_copied)
            if reason is None:
                if url.startswith(near):
                    site = home
                else:
                    site = site_of(url)
                    site = sites.setdefault(site, site)
                key = fingerprint(url)
                links.append(Link(url, site, key, depth, policy, worth, source, None, trust, (), "", provenance, hops))
            else:
                refused.append((url, reason))
        return links, refused

    def inherited(self, url: str, origin: Origin) -> Verdict:
        """Return the policy and trust that a canonical URL inherits from its origin, even if the URL would be refused.

        If the linking page's policy does not follow links, the inherited trust is 0.
        """
        law = self.policies
        rules = law.rules[origin.policy]
        heir, outside = _heirs(law, rules, origin)
        if outside is not heir and not rules.reach(origin.source)(site_of(url)):
            is_form = origin.kind == "redirect" and is_site_form(site_of(url), of=site_of(origin.source))
            heir = heir if is_form else outside
        if law.book is not None and _heeds_rules(origin) and (rule := law.book.find(url)) is not None:
            heir = _ruled(law, rule, heir)
        if heir.accepted.rule or origin.kind != "link":
            return heir.accepted
        if not rules.table.follow:
            return Verdict(rules.name, 0.0, None)
        return _split([heir.accepted], origin.links)[0] if rules.table.splitting else heir.accepted

    # -------------------------------------------------- policies and switches

    def seed(self, policy: str | None) -> Origin:
        """Return the origin for judging seeds. `policy` is the policy named in the seeds' lines, or None."""
        named = self.policies.standard if policy is None else policy
        return Origin("seed", 0, named, self.policies.rules[named].table.trust, is_named=policy is not None)

    def sitemap(self, site: str, *, depth: int) -> Origin:
        """Return the origin for judging the URLs of a sitemap. URLs of a sitemap get the policy of the site's first
        seed.
        """
        policy = self.policies.site_policy.get(site, self.policies.standard)
        return Origin("sitemap", depth, policy, self.policies.rules[policy].table.trust)

    def is_in_scope(self, site: str) -> bool:
        """Return whether the collection accepts pages of a site."""
        return self.policies.in_scope(site)

    def switched(self, policy: str, seen: PageFacts) -> SwitchTable | None:
        """Return the first ``[[switch]]`` whose conditions a fetched page meets. Return None if no ``[[switch]]``
        applies, or if the page already has the policy `to` of that ``[[switch]]``.
        """
        for rule in self.policies.switches:
            if meets(rule, seen):
                return None if rule.to == policy else rule
        return None

    def trust_switched(self, policy: str, trust: float, *, to: str) -> float:
        """Return the trust of a page after a switch has moved the page to another policy.

        If the new policy has more trust than the old policy, the page gets at least the new policy's trust. If the new
        policy has less trust than the old policy, the page gets at most the new policy's trust (Policies 2006).
        """
        law = self.policies
        own, given = law.rules[policy].table.trust, law.rules[to].table.trust
        return max(trust, given) if given > own else min(trust, given)

    def reaches_back(self, policy: str) -> bool:
        """Return whether some ``[[switch]]`` to this policy has `also = "discovered"`."""
        return any(rule.to == policy and rule.also == "discovered" for rule in self.policies.switches)

    def importance_of(self, record: PageRecord, trust: float) -> float:
        """Return the importance of a known page after its trust has changed. The importance of a ranked page does not
        depend on its trust.
        """
        law = self.policies
        return trust if law.is_trusting and not law.is_ranking else record.importance


class _Inheritance(NamedTuple):
    """The inheritance of links: the rules of a policy, and the verdict on every accepted link, with its trust."""

    rules: UrlRules
    accepted: Verdict


def _judge(law: CompiledPolicies, urls: Sequence[str], origin: Origin, home: str) -> list[Verdict]:
    """Judge URLs by the rules of all policies. `home` is the site of the page that links to them."""
    rules = law.rules[origin.policy]
    if origin.kind == "link" and not rules.table.follow:
        return [rules.refused["not_followed"]] * len(urls)
    inside, outside = _heirs(law, rules, origin)
    verdicts = _judge_under(law, inside, urls, origin, home)
    if outside is not inside:
        reaches = rules.reach(origin.source)
        far = [i for i, url in enumerate(urls) if not reaches(site_of(url))]
        if origin.kind == "redirect":
            far = [i for i in far if not is_site_form(site_of(urls[i]), of=home)]
        others = _judge_under(law, outside, [urls[i] for i in far], origin, home)
        for i, verdict in zip(far, others, strict=True):
            verdicts[i] = verdict
    if law.book is not None and _heeds_rules(origin):
        found: dict[tuple[PageRule, str], list[int]] = {}
        for i, url in enumerate(urls):
            if (rule := law.book.find(url)) is not None:
                found.setdefault((rule, verdicts[i].policy), []).append(i)
        for (rule, policy), places in found.items():
            heir = _ruled(law, rule, _Inheritance(law.rules[policy], verdicts[places[0]]))
            judged = _judge_under(law, heir, [urls[i] for i in places], origin, home)
            for i, verdict in zip(places, judged, strict=True):
                verdicts[i] = verdict
    if origin.kind == "link" and rules.table.splitting:
        return _split(verdicts, origin.links)
    return verdicts


def _accepted(verdicts: Sequence[Verdict]) -> int:
    """Return how many URLs were accepted."""
    if verdicts and verdicts.count(verdicts[0]) == len(verdicts):
        return len(verdicts) if verdicts[0].reason is None else 0
    return sum(verdict.reason is None for verdict in verdicts)


def _judge_under(
    law: CompiledPolicies, heir: _Inheritance, urls: Sequence[str], origin: Origin, home: str
) -> list[Verdict]:
    """Judge URLs by the rules of one policy."""
    rules, accepted = heir
    if origin.depth > law.depth:
        too_deep, out_of_scope = rules.refused["too_deep"], rules.refused["out_of_scope"]
        return [too_deep if law.in_scope(site_of(url)) else out_of_scope for url in urls]
    flaws = rules.flaws(urls)
    for i in law.outside(urls, home):
        flaws[i] = "out_of_scope"
    if flaws.count(None) == len(flaws):
        return [accepted] * len(flaws)
    verdicts = []
    for url, flaw in zip(urls, flaws, strict=True):
        if flaw is DATED:
            found = rules.step(url, origin.source)
        else:
            found = None if flaw == "not_allowed" and origin.depth == 0 else flaw
        verdicts.append(accepted if found is None else rules.refused[found])
    return verdicts


def _heirs(law: CompiledPolicies, rules: UrlRules, origin: Origin) -> tuple[_Inheritance, _Inheritance]:
    """Return the inheritance of links within the policy's `spread`, and the inheritance of all other links."""
    trust = origin.trust
    if origin.kind in ("link", "sitemap"):
        trust *= rules.table.dampening
    inside = _Inheritance(rules, Verdict(rules.name, trust, None))
    beyond = rules.table.otherwise
    if origin.kind in ("seed", "queued") or rules.table.spread == "any" or beyond == rules.name:
        return inside, inside
    other = law.rules[beyond]
    return inside, _Inheritance(other, Verdict(other.name, min(trust, other.table.trust), None))


def _heeds_rules(origin: Origin) -> bool:
    """Return whether a ``[[rule]]`` may replace the policy and trust that URLs get from their origin."""
    return origin.kind != "queued" and not origin.is_named


def _ruled(law: CompiledPolicies, rule: PageRule, heir: _Inheritance) -> _Inheritance:
    """Replace the inherited policy and trust with those of a ``[[rule]]``."""
    rules = heir.rules if rule.policy is None else law.rules[rule.policy]
    trust = rules.table.trust if rule.trust is None else rule.trust
    return _Inheritance(rules, Verdict(rules.name, trust, None, rule.number))


def _split(verdicts: list[Verdict], links: int = 0) -> list[Verdict]:
    """Divide trust among the accepted links (TrustRank's splitting; OPIC divides cash the same way).

    If `verdicts` has only some of a page's accepted links, `links` is the number of all of them. A link keeps the whole
    trust that a ``[[rule]]`` gave it.
    """
    kept = links or sum(verdict.reason is None for verdict in verdicts)
    if kept <= 1:
        return verdicts
    shares: dict[Verdict, Verdict] = {}
    return [
        verdict
        if verdict.reason is not None or verdict.rule
        else shares.setdefault(verdict, Verdict(verdict.policy, verdict.trust / kept, None))
        for verdict in verdicts
    ]


def _with_topics(collection: Collection) -> Iterator[str]:
    """Yield the policies whose pages may link to pages of a policy with a topic. A page gets a policy with a topic by
    inheritance, by a ``[[rule]]`` or by a ``[[switch]]``.
    """
    tables = collection.policies
    reached = {
        name: {name} | ({table.otherwise} if table.spread != "any" else set[str]()) for name, table in tables.items()
    }
    ruled = [rule.policy for rule in collection.tables.rule if rule.policy is not None]
    for name in tables:
        heirs = reached[name].union(ruled, *(reached[rule.to] for rule in collection.tables.switch))
        if any(tables[heir].topic is not None for heir in heirs):
            yield name


def judge_again(judge: Judge, records: Sequence[PageRecord]) -> Iterator[tuple[PageRecord, Verdict]]:
    """Judge known pages again, each by the rules of its own policy, and yield (page, verdict). Requests of Scrapy
    projects are skipped.
    """
    own = sorted((each for each in records if each.request is None), key=lambda each: (each.policy, each.depth))
    for (policy, depth), group in itertools.groupby(own, key=lambda each: (each.policy, each.depth)):
        pages = list(group)
        verdicts = judge.judge([page.url for page in pages], Origin("queued", depth, policy))
        yield from zip(pages, verdicts, strict=True)
