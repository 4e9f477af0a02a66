"""Tables of a policy file. Each table is a frozen struct, whose fields are the keys with their defaults.

Users rely on the format, so keys are not renamed (DESIGN.md section 8). The type of a key defines its allowed values.
`collection_file` reads the TOML, and checks keys that depend on each other. People write durations and sizes as
``"15m"`` or ``"10MB"``; the parsed values are numbers of seconds or bytes.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

import msgspec

from webfountain.formats.markdown import PageFormat  # noqa: TC001
from webfountain.policy.patterns import Pattern  # noqa: TC001  # msgspec reads it from the annotations
from webfountain.policy.units import Duration, PositiveDuration, Selector, Size
from webfountain.urls import MAX_URL_LENGTH

__all__ = [
    "PRESETS",
    "ChangeTable",
    "ChangesTable",
    "CollectionTable",
    "ConflictRule",
    "ConflictTable",
    "ContentTable",
    "CycleTable",
    "DiscoveryTable",
    "DuplicatesTable",
    "GoalTable",
    "IgnoredKind",
    "Language",
    "LimitsTable",
    "NetworkTable",
    "PolicyChangeTable",
    "PolicyContentTable",
    "PolicyFile",
    "PolicyTable",
    "PolitenessTable",
    "RankingTable",
    "RepositoryTable",
    "RevisitTable",
    "RuleTable",
    "Scope",
    "ScoreTable",
    "SeedTable",
    "Share",
    "SignalsTable",
    "Strategy",
    "SwitchTable",
    "Table",
    "Text",
    "TopicTable",
    "Weight",
    "WhenTable",
]

Scope = Literal["site", "domain", "any"]
Strategy = Literal[1, 2, 3, "fountain"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=1000)]
IgnoredKind = Literal["numbers", "dates", "case"]
Language = Annotated[str, msgspec.Meta(pattern="^[a-z]{2,3}$")]
"""A language code of ISO 639, as in the primary subtag of HTML's `lang`."""

PRESETS: Final[dict[str, dict[str, object]]] = {
    "default": {},
    "favor": {"trust": 1.0, "dampening": 0.85},
    "distrust": {"trust": 0.0, "follow": False},
}
"""Policies that always exist (source: Policies 2006). In a policy file, a policy with the name of a preset overrides
only the keys that it contains."""

ConflictRule = Literal["first", "most-trusted", "least-trusted"]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all tables; an unknown key is an error."""


class SeedTable(Table, frozen=True):
    """A seed with its policy. If `policy` is None, the seed has the policy of `collection.policy`."""

    url: Text
    policy: Text | None = None


class LimitsTable(Table, frozen=True):
    """Limits of a collection.

    - `depth`: hops from a seed; 0 keeps only the seeds.
    - `pages`: maximum number of pages in the collection; None: no limit.
    - `domain_share`: maximum share of a period's fetches for one registered domain; None: no limit.
    """

    depth: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 20
    pages: Annotated[int, msgspec.Meta(ge=1)] | None = None
    domain_share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class CollectionTable(Table, frozen=True):
    """The seeds of a collection, and the scope outside which links, redirects and sitemap URLs are refused."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")]
    seeds: tuple[str | SeedTable, ...] = ()
    seeds_file: Text | None = None
    scope: Scope = "site"
    policy: Text = "default"
    limits: LimitsTable = LimitsTable()


class PolitenessTable(Table, frozen=True):
    """Politeness to a site.

    The delay before a request is `delay_factor` times the duration of the last request, or the site's Crawl-delay if
    that is longer. The delay is at least `min_delay` and at most `max_delay`.
    """

    user_agent: Annotated[str, msgspec.Meta(pattern=r"^[!-~][ -~]{0,499}$")] = "webfountain/1.0"
    min_delay: Duration = Duration(1)
    delay_factor: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 10.0
    max_delay: Duration = Duration(300)
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    per_ip: bool = True
    timeout: PositiveDuration = PositiveDuration(30)
    max_bytes: Size = Size(10_000_000)
    min_bytes_per_second: Annotated[int, msgspec.Meta(ge=0)] = 100
    accept: tuple[Text, ...] = ("text/html", "application/xhtml+xml", "text/plain", "application/xml")

    @property
    def robots_token(self) -> str:
        """Name of this crawler in robots.txt: the first token of `user_agent`."""
        return re.split(r"[/\s]", self.user_agent, maxsplit=1)[0]

    @property
    def has_contact(self) -> bool:
        """Return whether `user_agent` has a contact for site owners: a URL or an e-mail address."""
        return re.search(r"https?://[^\s/]|[^\s@(<]@[^\s@]+\.[a-z]", self.user_agent) is not None


class NetworkTable(Table, frozen=True):
    """Addresses that may be requested. With `verify_tls`, sites with invalid TLS certificates are not requested."""

    allow_private: bool = False
    verify_tls: bool = False


class ContentTable(Table, frozen=True):
    """Which text and metadata are extracted from a page. `extractors` maps a media type to a Python function, as
    ``"package.module:function"``."""

    text: Literal["main", "all"] = "all"
    metadata: bool = False
    extractors: dict[str, str] = {}


class ChangeTable(Table, frozen=True):
    """Which differences between two copies count as a change.

    - `min_change`: a change counts if the resemblance is below 1 - `min_change`. At 0, any different byte counts; with
      any of the rules below or `content.text = "main"`, any difference in the part that counts.
    - `select`: only these elements count.
    - `ignore`: these elements do not count.
    - `ignore_text`: text that these patterns find does not count.
    - `ignore_kinds`: numbers, dates or the case of letters do not count.
    - `learn`: what differs at every visit, or between two visits seconds apart, stops counting.
    - `always`: these elements count even if `learn` finds that they differ at every visit.
    """

    min_change: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05
    select: tuple[Selector, ...] = ()
    ignore: tuple[Selector, ...] = ()
    ignore_text: tuple[Pattern, ...] = ()
    ignore_kinds: tuple[IgnoredKind, ...] = ()
    learn: bool = False
    always: tuple[Selector, ...] = ()


class ChangesTable(Table, frozen=True):
    """The change log. `diff` is the format of diffs in the log; `true` means text, and `false` means no diff."""

    diff: bool | PageFormat = False
    keep: PositiveDuration = PositiveDuration(30 * 86_400)
    max_entries: Annotated[int, msgspec.Meta(ge=1)] = 1_000_000


class DuplicatesTable(Table, frozen=True):
    """Pages that repeat other pages. `revisit` is the time between fetches of a duplicate, by default 30 periods."""

    detect: bool = False
    resemblance: Annotated[float, msgspec.Meta(ge=0.5, le=1)] = 0.9
    revisit: PositiveDuration | None = None


class RepositoryTable(Table, frozen=True):
    """Which copies and answers stay on disk. If `max_bytes` is None, the size is not limited. If `answers` is None,
    `keep` decides whether all answers are recorded (`keep_answers`)."""

    keep: Literal["newest", "all"] = "newest"
    max_bytes: Size | None = None
    answers: bool | None = None

    @property
    def keep_answers(self) -> bool:
        """Return whether all answers are recorded, such as redirects and errors, and not only copies of pages."""
        return self.keep == "all" if self.answers is None else self.answers


class CycleTable(Table, frozen=True):
    """The length of a cycle and of its periods. `fastest` is the mean change interval of pages in bucket 0."""

    periods: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 14
    period: PositiveDuration = PositiveDuration(86_400)
    fastest: PositiveDuration | None = None
    capacity_pages_per_period: Annotated[int, msgspec.Meta(ge=1)] | None = None
    strategy: Strategy = "fountain"

    @property
    def period_s(self) -> float:
        """Length of a time period, seconds."""
        return float(self.period)

    @property
    def fastest_s(self) -> float:
        """Mean change interval of pages in bucket 0, in seconds; by default 1/96 of a period."""
        return self.period / 96 if self.fastest is None else float(self.fastest)

    @property
    def cycle_s(self) -> float:
        """Length of a cycle, seconds."""
        return self.period * self.periods


class GoalTable(Table, frozen=True):
    """How fresh the crawl should keep its copies, with as few fetches as possible.

    At most the fraction `obsolete` of the copies may be out of date for longer than `longer_than`, or at all if
    `longer_than` is None.
    """

    obsolete: Annotated[float, msgspec.Meta(ge=0.0001, le=0.99)]
    longer_than: PositiveDuration | None = None


class SignalsTable(Table, frozen=True):
    """Facts that decide when a page is fetched again.

    - `importance`: under `strategy = "fountain"`, a page's freshness is weighted by its importance.
    - `lastmod`: a page is due if a sitemap or feed gives a later date than our copy's.
    """

    importance: bool = False
    lastmod: bool = True


class RankingTable(Table, frozen=True):
    """How pages are ranked by links. `every` is the time between two rankings. If `every` is None, there is no ranking
    and no link log.

    `links` is the folder or fsspec URL of the link log, by default next to the store or the repository.
    """

    every: PositiveDuration | None = None
    links: Text | None = None


class DiscoveryTable(Table, frozen=True):
    """How new URLs are found, and the limits against spider traps (`url_rules`).

    - `nofollow`: obey rel=nofollow, robots meta and X-Robots-Tag.
    - `calendar_years`: calendar pages are followed up to this number of years after the current one.
    """

    nofollow: bool = True
    sitemaps: bool = True
    max_url_length: Annotated[int, msgspec.Meta(ge=50, le=65_536)] = MAX_URL_LENGTH
    max_repeated_segments: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    calendar_years: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 2


class RevisitTable(Table, frozen=True):
    """Bounds of the time between two fetches of a page, which do not apply to the first fetch."""

    min_interval: Duration = Duration(0)
    max_interval: PositiveDuration | None = None


class ScoreTable(Table, frozen=True):
    """Weights of the scores that make up a page's importance. `core.importance` divides each score by its mean.

    - `pagerank`, `backlinks`: from the link graph.
    - `trust`: spreads from the seeds.
    - `topic`: similarity of a page's text to the policy's query. Before the page is fetched, its URL and the texts of
      links to it stand for its text, if their similarity is at least `topic.min_similarity`.
    - `location`: the page's place in its site.
    """

    pagerank: Weight = 0.0
    trust: Weight = 0.0
    backlinks: Weight = 0.0
    topic: Weight = 0.0
    location: Weight = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """Return the weights above 0, by name of score."""
        named = {name: float(getattr(self, name)) for name in self.__struct_fields__}
        return {name: weight for name, weight in named.items() if weight > 0}


class TopicTable(Table, frozen=True):
    """The topic of a policy. A page is on topic if its similarity to `query` is `min_similarity` or more.

    A new page is fetched first if its URL or the text of a link to it is on topic. A new page that is at most three
    links away from a page on topic is fetched first.
    """

    query: Text
    min_similarity: Share = 0.1


class PolicyContentTable(Table, frozen=True):
    """Keys that override those of the collection's `[content]` table for the pages of one policy."""

    text: Literal["main", "all"] | None = None
    metadata: bool | None = None


class PolicyChangeTable(Table, frozen=True):
    """Keys that override those of the collection's `[change]` table for the pages of one policy."""

    min_change: Share | None = None
    select: tuple[Selector, ...] | None = None
    ignore: tuple[Selector, ...] | None = None
    ignore_text: tuple[Pattern, ...] | None = None
    ignore_kinds: tuple[IgnoredKind, ...] | None = None
    learn: bool | None = None
    always: tuple[Selector, ...] | None = None


class PolicyTable(Table, frozen=True):
    """Rules for the pages of one policy.

    - `extends`: policy that gives the keys omitted here.
    - `trust`: trust of the policy's seeds, and the upper bound for pages that come from another policy.
    - `dampening`: factor of trust per hop.
    - `spread`: where a page's links inherit the policy. Elsewhere they get `otherwise`.
    - `follow`: whether links are accepted at all.
    - `allow`, `deny`: patterns searched in the canonical URL. `deny` wins; an empty `allow` allows all.
    - `score`: weights for the pages' importance; None: trust alone, if pages are ordered by trust.
    """

    extends: Text | None = None
    trust: Share = 0.5
    dampening: Share = 1.0
    splitting: bool = False
    spread: Literal["site", "domain", "any"] = "any"
    otherwise: Text = "default"
    follow: bool = True
    allow: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    score: ScoreTable | None = None
    topic: TopicTable | None = None
    revisit: RevisitTable = RevisitTable()
    content: PolicyContentTable = PolicyContentTable()
    change: PolicyChangeTable = PolicyChangeTable()


class WhenTable(Table, frozen=True):
    """Conditions, all of which a fetched page must meet.

    - `text`, `count`: its text contains `text` at least `count` times.
    - `language`: its text is in one of these languages.
    - `language_not`: its text is in a known language other than these.
    - `similarity`: least similarity to its policy's topic.
    - `similarity_below`: the similarity is less than this. Without a topic, neither similarity condition is met.
    - `duplicates`: least share of near-duplicates among the fetched pages of its site.
    - `discovered`: least share, of the fetched pages discovered through it, that were moved to the policy of the
      switch; they must also number at least `count`. It must be the only condition, because it is known long after the
      fetch.
    """

    text: Pattern | None = None
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    language: tuple[Language, ...] = ()
    language_not: tuple[Language, ...] = ()
    similarity: Share | None = None
    similarity_below: Share | None = None
    duplicates: Share | None = None
    discovered: Share | None = None


class SwitchTable(Table, frozen=True):
    """A rule that moves a page to the policy `to` if a fetch of the page meets the conditions `when`. Links that are
    found on a moved page after the move inherit the policy `to`.

    If `also` is "discovered", pages that were discovered through the page, directly or not, are moved too.
    """

    when: WhenTable
    to: Text
    also: Literal["linked", "discovered"] = "linked"


class ConflictTable(Table, frozen=True):
    """Which link decides the policy of a page if several links give it different policies. For example, `rule =
    "most-trusted"` chooses the link with the most trust."""

    rule: ConflictRule = "first"


class RuleTable(Table, frozen=True):
    """A rule that gives policy and trust to the pages of a host, or to all pages whose URLs match a pattern.

    If `policy` is None, a page keeps its inherited policy. If `trust` is None, a page gets the trust of its policy.
    """

    match: Text | tuple[Text, ...]
    policy: Text | None = None
    trust: Share | None = None

    @property
    def matches(self) -> tuple[str, ...]:
        """The hosts and patterns of `match` as a tuple."""
        return (self.match,) if isinstance(self.match, str) else self.match


class PolicyFile(Table, frozen=True):
    """A whole policy file as written."""

    collection: CollectionTable
    politeness: PolitenessTable = PolitenessTable()
    network: NetworkTable = NetworkTable()
    content: ContentTable = ContentTable()
    change: ChangeTable = ChangeTable()
    changes: ChangesTable = ChangesTable()
    repository: RepositoryTable = RepositoryTable()
    cycle: CycleTable = CycleTable()
    goal: GoalTable | None = None
    signals: SignalsTable = SignalsTable()
    ranking: RankingTable = RankingTable()
    discovery: DiscoveryTable = DiscoveryTable()
    duplicates: DuplicatesTable = DuplicatesTable()
    policies: dict[str, PolicyTable] = msgspec.field(default_factory=dict)
    rule: tuple[RuleTable, ...] = ()
    switch: tuple[SwitchTable, ...] = ()
    conflict: ConflictTable = ConflictTable()
