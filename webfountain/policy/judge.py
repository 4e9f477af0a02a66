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

`adopt` takes an edited collection in force between two batches.

Spider traps: URLs that a site makes without end. Each rule looks at one URL and at the page that links it. No rule
keeps state: a crawl that was killed and resumed refuses the same URLs, in whatever order pages come, and memory stays
what it is. The rules, in the words that are counted:

``too_long``
    more than `discovery.max_url_length` characters (2083: the longest that search engines index).
``too_deep``
    more than `collection.limits.depth` hops from a seed: what bounds every trap that no other rule knows.
``trap_repeated``
    one path segment, or one whole query parameter, occurs more than `discovery.max_repeated_segments` times
    (``/a/b/a/b/a/b/a/b``): relative links that lead below themselves. Heritrix's PathologicalPath and Nutch's
    ``(/[^/]+)/[^/]+\\1/[^/]+\\1/`` are its elders; theirs ask for neighbours, and miss longer loops.
``trap_calendar``
    a step out of a calendar: the linking page and the link are of one pattern (equal but for numbers and names of
    months), the page's date is within bounds and the link's is not: before 1990, when there was no web, or
    more than `discovery.calendar_years` after this year. So ``/2029/01`` is refused on ``/2028/12`` but kept on an
    archive's index, a seed list or a sitemap; ``/thread/2105/2`` is kept on ``/thread/2105/1``. A date is
    a year with a month beside it, or a year in a parameter named for time.

Numbered archives (``?page=7``) are no trap: depth bounds them.

What a policy file would do to a frontier that exists: which known URLs it would drop, which refused ones it takes.
Asked before an edited file is used (`webfountain policy check FILE --against STORE`). Reads the store, also beside
the crawl that writes it; one judge's batch for each thousand URLs of one policy and depth.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

import msgspec

from webfountain.urls import host_of, registered_domain, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webfountain.policy import PolicyTable, SwitchTable
    from webfountain.policy.files import Collection
    from webfountain.records import PageRecord

__all__ = [
    "FIRST_YEAR",
    "REASONS",
    "Judge",
    "Origin",
    "PolicyEffect",
    "Reason",
    "Seen",
    "Verdict",
    "is_off_calendar",
    "is_repeated",
    "judge_again",
    "leaves_calendar",
    "newly_followed",
    "policy_effect",
    "year_of",
]

FIRST_YEAR: Final = 1990
"""Calendar pages of earlier years were not written for the web."""

_MONTH_NAME: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_MONTH: Final = rf"(?:w?[0-5]?[0-9](?![0-9])|{_MONTH_NAME})"
_YEAR: Final = r"(19[0-9]{2}|2[01][0-9]{2})"
_TIME_KEY: Final = r"(?:[?&;](?:y|yr)|year|date|day|month|week|time|cal(?:endar)?|start|from)=(?:[0-9]{1,2}[-/.])*"
_HAS_YEAR: Final = re.compile(r"19[0-9]{2}|2[01][0-9]{2}")
_DATE: Final = re.compile(
    rf"(?<![0-9]){_YEAR}[-/_.]{_MONTH}"  # 2026/11, 2026-11-20, 2026-w47, 2026/november
    rf"|(?<![0-9a-z])(?:[0-3]?[0-9]|{_MONTH_NAME})[-/_.]{_YEAR}(?![0-9])"  # 11-2026, 20.11.2026, november-2026
    rf"|(?<![0-9]){_YEAR}(?:0[1-9]|1[0-2])(?:[0-3][0-9])?(?![0-9])"  # 202611, 20261120
    rf"|{_TIME_KEY}{_YEAR}(?:-?[0-1][0-9]|(?![0-9]))"  # year=2026, date=20261120
)
_VARYING: Final = re.compile(rf"[0-9]+|(?<![a-z]){_MONTH_NAME}")


def is_repeated(url: str, most: int) -> bool:
    """Whether one path segment or one query parameter of `url` occurs more than `most` times."""
    path, _, query = url.partition("?")
    return _repeats(path.split("/")[3:], most) or (query.count("&") >= most and _repeats(query.split("&"), most))


def _repeats(parts: list[str], most: int) -> bool:
    distinct = set(parts)
    # One of n parts can occur most + 1 times only if at least `most` are copies of another.
    return len(parts) - len(distinct) >= most and any(parts.count(part) > most for part in distinct)


def year_of(url: str) -> int | None:
    """The year of the first date in a URL's path or query, from 1900 to 2199; None without a date."""
    at = url.find("/", 8)
    if _HAS_YEAR.search(url, at) is None:
        return None
    found = _DATE.search(url[at:].lower())
    return None if found is None else int(next(year for year in found.groups() if year))


def is_off_calendar(url: str, *, last_year: int) -> bool:
    """Whether a URL has a date before FIRST_YEAR or after `last_year`."""
    year = year_of(url)
    return year is not None and not FIRST_YEAR <= year <= last_year


def leaves_calendar(url: str, source: str, *, last_year: int) -> bool:
    """Whether the link from page `source` to `url` steps over the bounds of a calendar, FIRST_YEAR to `last_year`."""
    if not is_off_calendar(url, last_year=last_year):
        return False
    from_year = year_of(source)
    within = from_year is not None and FIRST_YEAR <= from_year <= last_year
    return within and _pattern(url) == _pattern(source)


def _pattern(url: str) -> str:
    return _VARYING.sub("0", url.lower())


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

_SCOPE_MEMO: Final = 65_536
_URL_MEMO: Final = 16_384
"""Sites' template links come on every page: about 4 MB save three quarters of the work where URLs are looked at one by
one."""
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
    """What a fetch showed of its page, for the rules of ``[[switch]]``; of what none asks for (`asks`) nothing.

    `language` and `similarity` are None where they are not known, `duplicates` is a share of the page's site.
    `followed` pages that were discovered through it have been fetched, `switched` tells how many of them were put
    under which policy: both are known later than the rest, and then nothing else is.
    """

    status: int | None = None
    text: str = ""
    language: str | None = None
    similarity: float | None = None
    duplicates: float = 0.0
    followed: int = 0
    switched: Mapping[str, int] = {}


class _Law:
    """One collection, compiled; replaced whole when it is edited, so that a batch is judged by one version."""

    def __init__(self, collection: Collection, *, year: int) -> None:
        discovery, tables = collection.discovery, collection.tables
        self.depth = collection.depth
        self.standard = tables.collection.policy
        self.switches = tables.switch
        self.asks = frozenset(_asked_for(tables.switch))
        self.topical = frozenset(_with_topics(collection))
        self.is_trusting = collection.is_trusting
        self.bounds = {_bounds(collection.policies[name]) for name in collection.policies_in_use}
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

    def outside(self, urls: Sequence[str], source: str) -> list[int]:
        """Which of the canonical URLs are on no site in scope. Most are on the site of their source."""
        in_scope, home = self.in_scope, site_of(source)
        near = home + "/" if in_scope(home) else "/"  # with which none begins
        return [
            i for i, url in enumerate(urls) if not (url.startswith(near) or in_scope(url[: url.find("/", 8)]))
        ]  # canonical: there is always a path


class Judge:
    """Judges by one collection; `year` is the present one, for calendars. Any thread may ask."""

    def __init__(self, collection: Collection, *, year: int) -> None:
        self._year = year
        self._law = _Law(collection, year=year)

        self._bounds_at_start = self._law.bounds

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
            return [rules.refused["not_followed"]] * len(urls)
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

    def bounds_by_policy(self) -> bool:
        """Whether a page's policy must be asked how soon and how late it is fetched again.

        Not where all policies say the same, and said so when the schedules were made.
        """
        bounds = self._law.bounds
        return len(bounds) > 1 or bounds != self._bounds_at_start

    def is_in_scope(self, site: str) -> bool:
        """Whether the collection keeps pages of a site at all."""
        return self._law.in_scope(site)

    @property
    def asks(self) -> frozenset[str]:
        """What the rules of ``[[switch]]`` need to be known: language, similarity, duplicates, discovered."""
        return self._law.asks

    def follows_topics(self, policy: str) -> bool:
        """Whether this policy, or one that links of its pages can come under, has a topic: then their texts count."""
        law = self._law
        return bool(law.topical) and law.rules(policy).name in law.topical

    def switched(self, policy: str, seen: Seen) -> SwitchTable | None:
        """The first rule of ``[[switch]]`` that a fetched page meets and that leads elsewhere; None: none does."""
        for rule in self._law.switches:
            if _meets(rule, seen):
                return None if rule.to == policy else rule
        return None

    def reaches_back(self, policy: str) -> bool:
        """Whether what was discovered through a page follows it when it is switched to this policy."""
        return any(rule.to == policy and rule.also == "discovered" for rule in self._law.switches)

    def importance(self, verdict: Verdict) -> float:
        """Of a URL whose rank is not known: its trust, where the collection's policies tell pages apart by it."""
        return verdict.trust if self._law.is_trusting else 0.0


def _bounds(table: PolicyTable) -> tuple[float, float | None]:
    return table.revisit.min_interval, table.revisit.max_interval


class _Rules:
    """One policy, compiled: what is wrong with a URL under it, how far it spreads."""

    __slots__ = ("_allow", "_deny", "_flaw", "_last_year", "_longest", "_most", "name", "refused", "table")

    def __init__(self, name: str, table: PolicyTable, *, longest: int, most: int, last_year: int) -> None:
        self.name = name
        self.table = table
        self.refused = {reason: Verdict(name, 0.0, reason) for reason in REASONS}
        self._longest = longest
        self._most = most
        self._last_year = last_year
        self._allow = _any_of(table.allow)
        self._deny = _any_of(table.deny)
        self._flaw = functools.lru_cache(_URL_MEMO)(self._find_flaw)

    def flaws(self, urls: Sequence[str]) -> list[Reason | None]:
        """What is wrong with each URL alone."""
        if self._allow is None and self._deny is None and self._are_plain(urls):
            return [None] * len(urls)
        return list(map(self._flaw, urls))

    def _are_plain(self, urls: Sequence[str]) -> bool:
        """Whether nothing but a pattern could be wrong with any of them. All are looked at together: on most pages it
        is so, and to remember each URL costs more than to look, once there are too many for the processor's cache."""
        together, most = "\n".join(urls), self._most
        return (
            together.count("&") < most
            and _HAS_YEAR.search(together) is None
            and max([url.count("/") for url in urls], default=0) < _LEAST_SLASHES + most
            and (len(together) <= self._longest or max(map(len, urls)) <= self._longest)
        )

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


class _Heir(NamedTuple):
    """A policy and trust on their way to a link, as the verdict on all that is taken in."""

    rules: _Rules
    accepted: Verdict


def _judge_under(law: _Law, heir: _Heir, urls: Sequence[str], origin: Origin) -> list[Verdict]:
    """The verdicts under one policy; nearly always all of them are one."""
    rules, accepted = heir
    if origin.depth > law.depth:
        too_deep, out_of_scope = rules.refused["too_deep"], rules.refused["out_of_scope"]
        return [too_deep if law.in_scope(site_of(url)) else out_of_scope for url in urls]
    flaws = rules.flaws(urls)
    for i in law.outside(urls, origin.source):
        flaws[i] = "out_of_scope"
    if flaws.count(None) == len(flaws):
        return [accepted] * len(flaws)
    verdicts = []
    for url, flaw in zip(urls, flaws, strict=True):
        if flaw is _DATED:
            found = rules.step(url, origin.source)
        else:
            found = None if flaw == "not_allowed" and origin.depth == 0 else flaw
        verdicts.append(accepted if found is None else rules.refused[found])
    return verdicts


def _heirs(law: _Law, rules: _Rules, origin: Origin) -> tuple[_Heir, _Heir]:
    """Who inherits within the policy's spread, and who beyond it."""
    trust = origin.trust
    if origin.kind in ("link", "sitemap"):
        trust *= rules.table.dampening
    inside = _Heir(rules, Verdict(rules.name, trust, None))
    beyond = rules.table.otherwise
    if origin.kind in ("seed", "queued") or rules.table.spread == "any" or beyond == rules.name:
        return inside, inside
    other = law.rules(beyond)
    return inside, _Heir(other, Verdict(other.name, min(trust, other.table.trust), None))


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


def _asked_for(switches: Sequence[SwitchTable]) -> Iterator[str]:
    for when in (rule.when for rule in switches):
        if when.language or when.language_not:
            yield "language"
        if when.similarity is not None or when.similarity_below is not None:
            yield "similarity"
        if when.duplicates is not None:
            yield "duplicates"
        if when.discovered is not None:
            yield "discovered"


def _with_topics(collection: Collection) -> Iterator[str]:
    """The policies whose pages can link to pages of a policy with a topic, after a switch, too."""
    tables = collection.policies
    reached = {
        name: {name} | ({table.otherwise} if table.spread != "any" else set[str]()) for name, table in tables.items()
    }
    for name in tables:
        heirs = reached[name].union(*(reached[rule.to] for rule in collection.tables.switch))
        if any(tables[heir].topic is not None for heir in heirs):
            yield name


def _meets(rule: SwitchTable, seen: Seen) -> bool:
    """Whether a page shows all that a switch asks for."""
    when, language, similarity = rule.when, seen.language, seen.similarity
    return (
        (when.status is None or when.status == seen.status)
        and (not when.language or language in when.language)
        and (not when.language_not or (language is not None and language not in when.language_not))
        and (when.similarity is None or (similarity is not None and similarity >= when.similarity))
        and (when.similarity_below is None or (similarity is not None and similarity < when.similarity_below))
        and (when.duplicates is None or seen.duplicates >= when.duplicates)
        and (when.text is None or _occurs(when.text, seen.text, when.count))
        and (when.discovered is None or _leads_to(rule, seen))
    )


def _leads_to(rule: SwitchTable, seen: Seen) -> bool:
    """Whether enough of what was discovered through a page was switched to where the rule leads.

    Source: Krishnan, Raj 2006 (Anti-TrustRank: distrust flows against the links). Deviation: it flows back only along
    the links by which pages were discovered, and only where most of what they led to was bad, so that a guestbook that
    spammers found is not condemned with them.
    """
    bad = seen.switched.get(rule.to, 0)
    return bad >= rule.when.count and bad >= (rule.when.discovered or 0.0) * seen.followed


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


_BATCH: Final = 1000
_SAMPLE: Final = 10
"""URLs shown of each kind."""


class PolicyEffect(msgspec.Struct, frozen=True):
    """Of `known` URLs: how many would be dropped by reason, how many refused ones taken in again, and some of each."""

    known: int
    dropped: dict[str, int]
    taken: int
    sample_dropped: tuple[str, ...]
    sample_taken: tuple[str, ...]


def policy_effect(judge: Judge, records: Iterable[PageRecord]) -> PolicyEffect:
    """What the judge says of every record.

    URLs that the policy never let in are not in a store: `newly_followed` judges what the link log has of them. They
    are taken in as the pages that link them are fetched again. Requests of other projects are not judged.
    """
    known = taken = 0
    dropped: Counter[str] = Counter()
    samples: tuple[list[str], list[str]] = ([], [])
    remaining = iter(records)
    while batch := list(itertools.islice(remaining, _BATCH)):
        known += len(batch)
        for page, verdict in judge_again(judge, batch):
            was_refused = page.state == "refused" and page.error in REASONS
            if verdict.reason is not None and not was_refused:
                dropped[verdict.reason] += 1
                _keep(samples[0], page.url)
            elif verdict.reason is None and was_refused:
                taken += 1
                _keep(samples[1], page.url)
    return PolicyEffect(known, dict(dropped.most_common()), taken, tuple(samples[0]), tuple(samples[1]))


def newly_followed(judge: Judge, pages: Iterable[tuple[PageRecord, Sequence[str]]]) -> set[str]:
    """Links of known pages that were refused when these were fetched, as the judge would take them in now."""
    found: set[str] = set()
    for page, urls in pages:
        verdicts = judge.judge(urls, Origin("link", page.depth + 1, page.policy, page.trust, page.url))
        found.update(url for url, verdict in zip(urls, verdicts, strict=True) if verdict.reason is None)
    return found


def judge_again(judge: Judge, records: Sequence[PageRecord]) -> Iterator[tuple[PageRecord, Verdict]]:
    """Known pages and what the judge says of them now, each under its own policy; not requests of other projects."""
    own = sorted((each for each in records if each.request is None), key=lambda each: (each.policy, each.depth))
    for (policy, depth), group in itertools.groupby(own, key=lambda each: (each.policy, each.depth)):
        pages = list(group)
        verdicts = judge.judge([page.url for page in pages], Origin("queued", depth, policy))
        yield from zip(pages, verdicts, strict=True)


def _keep(sample: list[str], url: str) -> None:
    if len(sample) < _SAMPLE:
        sample.append(url)
