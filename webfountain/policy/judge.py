"""The judge: whether a URL belongs to the collection, under which policy, how far it is trusted, and why not.

Place in the walk: between `urls.canonical` and the host splitter, and again before a queued URL is fetched. It is
built once and asked in batches: all candidates of one *origin* (a seed list, a page's links, a redirect, a sitemap,
URLs queued under an older policy file) at once. Verdicts are shared values, so a batch costs a look at each URL and
no object a link. Everything is compiled once; a site's scope is decided once; verdicts depend on their arguments alone.

Life of a policy on its way from the seeds (Policies 2006, "Per-page crawling policy"):

1. A seed carries the policy that its line names, else `collection.policy`, and that policy's `trust`.
2. A page linked from it inherits the policy, as far as the policy's `spread` reaches (the linking page's site, its
   registered domain, anywhere); beyond that it gets the policy that `otherwise` names.
3. Trust flows with the link: less by `dampening` with each hop, divided among the page's accepted links where
   `splitting` is set (TrustRank's two attenuations; PAPERS.md section 6). A policy's own `trust` bounds what is taken
   in under it when the policy changes on the way, so `otherwise = "distrust"` distrusts.
4. After each fetch `switched` may move the page to another policy; what it links from then on inherits that.
5. A URL that is found again keeps the policy under which it was found first.

The spider traps are told in `traps`. `adopt` takes an edited collection in force between two batches.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from webfountain.policy.traps import is_off_calendar, is_repeated, leaves_calendar
from webfountain.urls import host_of, registered_domain, site_of

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from webfountain.policy.files import Collection
    from webfountain.policy.tables import PolicyTable, SwitchTable

__all__ = ["REASONS", "Judge", "Origin", "Reason", "Seen", "Verdict"]

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
REASONS: Final[tuple[Reason, ...]] = (
    "out_of_scope",
    "denied",
    "not_allowed",
    "too_deep",
    "too_long",
    "trap_repeated",
    "trap_calendar",
    "not_followed",
)

_SCOPE_MEMO: Final = 65_536
_URL_MEMO: Final = 16_384
"""Sites' template links come on every page: about 4 MB save three quarters of the work."""
_DATED: Final = "trap_calendar"
"""Of a URL alone: no flaw but on some pages."""
_LEAST_SLASHES: Final = 3
"""Of ``scheme://host/``: a path of n segments has this many and n - 1."""


class Verdict(NamedTuple):
    """Of one URL: its policy, the trust that reaches it (0 to 1), and the reason when it is refused, else None."""

    policy: str
    trust: float
    reason: Reason | None


class Origin(msgspec.Struct, frozen=True):
    """Where the candidates of a batch come from.

    `depth` is the candidates' own number of hops from a seed. `policy` and `trust` are those of the page that names
    them; of seeds, and of URLs that are queued already, their own. `source` is the canonical URL of the page that
    links them, "" where none does.
    """

    kind: Literal["seed", "link", "redirect", "sitemap", "queued"]
    depth: int
    policy: str
    trust: float = 0.0
    source: str = ""


class Seen(msgspec.Struct, frozen=True):
    """What a fetch showed of its page, for the rules of ``[[switch]]``."""

    status: int | None = None
    text: str = ""


class _Law:
    """One collection, compiled; replaced whole when it is edited, so that a batch is judged by one version."""

    def __init__(self, collection: Collection, *, year: int) -> None:
        discovery, tables = collection.discovery, collection.tables
        self.depth = collection.depth
        self.standard = tables.collection.policy
        self.switches = tables.switch
        self.is_trusting = collection.is_trusting
        self.in_scope = _scope_rule(collection)
        self.site_policy: dict[str, str] = {}
        for url, policy in collection.named_seeds():
            self.site_policy.setdefault(site_of(url), policy)
        self._rules = {
            name: _Rules(
                name,
                table,
                longest=discovery.max_url_length,
                most=discovery.max_repeated_segments,
                last_year=year + discovery.calendar_years,
            )
            for name, table in collection.policies.items()
        }

    def rules(self, policy: str) -> _Rules:
        """The rules of a policy, those of the default for a name that is gone."""
        return self._rules.get(policy) or self._rules["default"]


class Judge:
    """Judges by one collection; `year` is the present one, for calendars. Any thread may ask."""

    def __init__(self, collection: Collection, *, year: int) -> None:
        self._year = year
        self._law = _Law(collection, year=year)

    def adopt(self, collection: Collection) -> None:
        """Judge by this collection from now on: its seeds, scope, depth, traps, policies and switches.

        For an edited policy file; batches under way are judged by the one before to their end.
        """
        self._law = _Law(collection, year=self._year)

    # ---------------------------------------------------------- the question

    def judge(self, urls: Sequence[str], origin: Origin) -> list[Verdict]:
        """One verdict for each canonical URL, in order.

        A seed (depth 0) needs no allow pattern: the operator named it, often as a mere way in; deny binds it too.
        A redirect passes its page's trust on whole, for it is the same page elsewhere.
        """
        law = self._law
        rules = law.rules(origin.policy)
        if origin.kind == "link" and not rules.table.follow:
            refused = Verdict(rules.name, 0.0, "not_followed")
            return [refused] * len(urls)
        inside, outside = _heirs(law, rules, origin)
        verdicts = _judge_under(law, inside, urls, origin)
        if outside is not inside:
            reaches = rules.reach(origin.source)
            far = [i for i, url in enumerate(urls) if not reaches(url[: url.find("/", 8)])]
            others = _judge_under(law, outside, [urls[i] for i in far], origin)
            for i, verdict in zip(far, others, strict=True):
                verdicts[i] = verdict
        if origin.kind == "link" and rules.table.splitting:
            return _split(verdicts)
        return verdicts

    # -------------------------------------------------- what else a policy says

    def seed(self, policy: str) -> Origin:
        """The origin of seeds under a policy: its own trust, no hop."""
        return Origin("seed", 0, policy, self._law.rules(policy).table.trust)

    def sitemap(self, site: str, *, depth: int) -> Origin:
        """The origin of what a sitemap of the site names: under the policy of the site's first seed."""
        policy = self._law.site_policy.get(site, self._law.standard)
        return Origin("sitemap", depth, policy, self._law.rules(policy).table.trust)

    def policy(self, name: str) -> PolicyTable:
        """The rules of a policy, those of the default for a name that is gone."""
        return self._law.rules(name).table

    def is_in_scope(self, site: str) -> bool:
        """Whether the collection keeps pages of a site at all."""
        return self._law.in_scope(site)

    def switched(self, policy: str, seen: Seen) -> SwitchTable | None:
        """The first rule of ``[[switch]]`` that a fetched page meets and that leads elsewhere; None: none does."""
        for rule in self._law.switches:
            if _meets(rule, seen):
                return None if rule.to == policy else rule
        return None

    def importance(self, verdict: Verdict) -> float:
        """Of a URL whose rank is not known: its trust, where the collection's policies tell pages apart by it."""
        return verdict.trust if self._law.is_trusting else 0.0


class _Rules:
    """One policy, compiled: what is wrong with a URL under it, how far it spreads."""

    __slots__ = ("_allow", "_deny", "_last_year", "_longest", "_most", "flaw", "name", "table")

    def __init__(self, name: str, table: PolicyTable, *, longest: int, most: int, last_year: int) -> None:
        self.name = name
        self.table = table
        self._longest = longest
        self._most = most
        self._last_year = last_year
        self._allow = _any_of(table.allow)
        self._deny = _any_of(table.deny)
        self.flaw = functools.lru_cache(_URL_MEMO)(self._find_flaw)

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

    def step(self, url: str, source: str) -> Reason | None:
        """Whether the link leads out of a calendar."""
        return "trap_calendar" if source and leaves_calendar(url, source, last_year=self._last_year) else None

    def reach(self, source: str) -> Callable[[str], bool]:
        """Whether a site is within the policy's spread from the page `source`."""
        if self.table.spread == "any" or not source:
            return _anywhere
        home = site_of(source)
        if self.table.spread == "site":
            return home.__eq__
        domain = registered_domain(host_of(home))
        return lambda site: site == home or registered_domain(host_of(site)) == domain


class _Heir:
    """A policy and trust on their way to a link, with the two commonest verdicts."""

    __slots__ = ("accepted", "out_of_scope", "rules")

    def __init__(self, rules: _Rules, trust: float) -> None:
        self.rules = rules
        self.accepted = Verdict(rules.name, trust, None)
        self.out_of_scope = Verdict(rules.name, 0.0, "out_of_scope")


def _judge_under(law: _Law, heir: _Heir, urls: Sequence[str], origin: Origin) -> list[Verdict]:
    """The verdicts under one policy; the crawl's busiest loop but for the parser's."""
    rules, accepted, out_of_scope = heir.rules, heir.accepted, heir.out_of_scope
    in_scope, find_flaw = law.in_scope, rules.flaw
    if origin.depth > law.depth:
        too_deep = Verdict(rules.name, 0.0, "too_deep")
        return [too_deep if in_scope(site_of(url)) else out_of_scope for url in urls]
    verdicts = []
    for url in urls:
        if not in_scope(url[: url.find("/", 8)]):  # canonical: there is always a path
            verdicts.append(out_of_scope)
            continue
        flaw = find_flaw(url)
        if flaw is None:
            verdicts.append(accepted)
            continue
        if flaw is _DATED:
            flaw = rules.step(url, origin.source)
        elif flaw == "not_allowed" and origin.depth == 0:
            flaw = None
        verdicts.append(accepted if flaw is None else Verdict(rules.name, 0.0, flaw))
    return verdicts


def _heirs(law: _Law, rules: _Rules, origin: Origin) -> tuple[_Heir, _Heir]:
    """Who inherits within the policy's spread, and who beyond it."""
    trust = origin.trust
    if origin.kind in ("link", "sitemap"):
        trust *= rules.table.dampening
    inside = _Heir(rules, trust)
    beyond = rules.table.otherwise
    if origin.kind in ("seed", "queued") or rules.table.spread == "any" or beyond == rules.name:
        return inside, inside
    other = law.rules(beyond)
    return inside, _Heir(other, min(trust, other.table.trust))


def _scope_rule(collection: Collection) -> Callable[[str], bool]:
    """Whether a site is in scope."""
    if collection.scope == "any":
        return _anywhere
    if collection.scope == "site":
        return frozenset(map(site_of, collection.seeds())).__contains__
    domains = frozenset(registered_domain(host_of(url)) for url in collection.seeds())
    return functools.lru_cache(_SCOPE_MEMO)(lambda site: registered_domain(host_of(site)) in domains)


def _split(verdicts: list[Verdict]) -> list[Verdict]:
    """Trust divided among the links that are taken in (TrustRank's splitting; OPIC divides cash the same way)."""
    kept = sum(verdict.reason is None for verdict in verdicts)
    if kept <= 1:
        return verdicts
    shares: dict[Verdict, Verdict] = {}
    return [
        verdict
        if verdict.reason is not None
        else shares.setdefault(verdict, Verdict(verdict.policy, verdict.trust / kept, None))
        for verdict in verdicts
    ]


def _meets(rule: SwitchTable, seen: Seen) -> bool:
    """Whether a page shows all that a switch asks for."""
    when = rule.when
    if when.status is not None and when.status != seen.status:
        return False
    return when.text is None or _occurs(when.text, seen.text, when.count)


def _occurs(pattern: re.Pattern[str], text: str, count: int) -> bool:
    return any(number == count for number, _ in enumerate(pattern.finditer(text), start=1))


def _any_of(patterns: Sequence[re.Pattern[str]]) -> Callable[[str], object] | None:
    """A search for any of the patterns, None without one.

    They are asked one by one: joined into one alternation, group numbers and inline flags would change meaning.
    """
    searches = [pattern.search for pattern in patterns]
    if len(searches) <= 1:
        return searches[0] if searches else None
    return lambda url: any(search(url) for search in searches)


def _anywhere(_site: str) -> bool:
    return True
