"""Tables of a policy file. Each table is a frozen struct; each key is a field with its default.

The format is a promise (DESIGN.md section 8). The type of a key defines its allowed values. `collection_file` reads the
TOML and checks keys that must agree; `errors` writes the error messages. Durations and sizes are written as people
write them, ``"15m"``, ``"10MB"``. The parsed values are numbers (seconds, bytes) of special types.
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
"""Policies that always exist, after Policies 2006. A table with the name of one of them changes only the keys that it
contains."""

ConflictRule = Literal["first", "most-trusted", "least-trusted"]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all tables: an unknown key is an error."""


class SeedTable(Table, frozen=True):
    """A seed with its policy; None means `collection.policy`."""

    url: Text
    policy: Text | None = None


class LimitsTable(Table, frozen=True):
    """Limits of a collection. `depth`: hops from a seed; 0 keeps only the seeds.

    `pages`: maximum number of pages in the collection; None: no limit. `domain_share`: maximum share of a period's
    fetches for one registered domain; None: no limit.
    """

    depth: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 20
    pages: Annotated[int, msgspec.Meta(ge=1)] | None = None
    domain_share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class CollectionTable(Table, frozen=True):
    """Pages of a collection: its seeds, and the scope of links, redirects and sitemap URLs that are kept."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")]
    seeds: tuple[str | SeedTable, ...] = ()
    seeds_file: Text | None = None
    scope: Scope = "site"
    policy: Text = "default"
    limits: LimitsTable = LimitsTable()


class PolitenessTable(Table, frozen=True):
    """Politeness to a site: the next request follows after max(min_delay, delay_factor x duration of the last one,
    Crawl-delay up to max_delay).
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
    """Addresses that may be requested. `allow_private`: also loopback and private addresses.

    `verify_tls`: verify a site's certificate as browsers do; a site whose certificate fails is not requested.
    """

    allow_private: bool = False
    verify_tls: bool = False


class ContentTable(Table, frozen=True):
    """What is taken from a page: its `main` content or `all` its text, and whether its metadata is kept.

    `extractors`: functions of the project, by media type, as ``"package.module:function"``.
    """

    text: Literal["main", "all"] = "all"
    metadata: bool = False
    extractors: dict[str, str] = {}


class ChangeTable(Table, frozen=True):
    """Which changes count. A change counts if resemblance < 1 - `min_change`; if `min_change` is 0, it counts if any
    byte differs.

    `select`: only these elements count. `ignore`: these do not. `ignore_text`: text that these patterns find does not
    count. `ignore_kinds`: numbers, dates or the case of letters do not count. `learn`: what differs at every visit, or
    between two visits seconds apart, stops counting. `always`: these elements never stop counting in this way. With any
    of these rules, or with `content.text = "main"`, a `min_change` of 0 means any difference in what counts."""

    min_change: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05
    select: tuple[Selector, ...] = ()
    ignore: tuple[Selector, ...] = ()
    ignore_text: tuple[Pattern, ...] = ()
    ignore_kinds: tuple[IgnoredKind, ...] = ()
    learn: bool = False
    always: tuple[Selector, ...] = ()


class ChangesTable(Table, frozen=True):
    """The change log: how long and how many entries are kept, and whether they contain a diff of the texts, and in
    which format: text (`true` means the same), Markdown or HTML.
    """

    diff: bool | PageFormat = False
    keep: PositiveDuration = PositiveDuration(30 * 86_400)
    max_entries: Annotated[int, msgspec.Meta(ge=1)] = 1_000_000


class DuplicatesTable(Table, frozen=True):
    """Pages that repeat others, on any site: whether they are detected, from which resemblance on, and how rarely they
    are fetched.

    `revisit` None: every 30 periods (`Collection.duplicates_revisit_s`).
    """

    detect: bool = False
    resemblance: Annotated[float, msgspec.Meta(ge=0.5, le=1)] = 0.9
    revisit: PositiveDuration | None = None


class RepositoryTable(Table, frozen=True):
    """Data that stays on disk. Without `max_bytes`, its size is not limited. `answers` None: see `keep_answers`."""

    keep: Literal["newest", "all"] = "newest"
    max_bytes: Size | None = None
    answers: bool | None = None

    @property
    def keep_answers(self) -> bool:
        """Return whether answers that are not copies are recorded too: redirects, gone pages, errors, robots.txt,
        sitemaps."""
        return self.keep == "all" if self.answers is None else self.answers


class CycleTable(Table, frozen=True):
    """The periods that are planned together. `fastest` is the change interval of bucket 0."""

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
        """Mean change interval of bucket 0, seconds: period/96 unless it is set (15 minutes for a day)."""
        return self.period / 96 if self.fastest is None else float(self.fastest)

    @property
    def cycle_s(self) -> float:
        """Length of a cycle, seconds."""
        return self.period * self.periods


class GoalTable(Table, frozen=True):
    """State that the crawl should hold with as few fetches as possible: at most the share `obsolete` of the copies has
    been out of date for longer than `longer_than`. If `longer_than` is None, every copy that is out of date counts.
    """

    obsolete: Annotated[float, msgspec.Meta(ge=0.0001, le=0.99)]
    longer_than: PositiveDuration | None = None


class SignalsTable(Table, frozen=True):
    """What else, besides changes that were found, decides when a page is fetched again.

    `importance`: under `strategy = "fountain"` a page's freshness is weighted by its importance. `lastmod`: a page is
    due if a sitemap or feed gives a later date than the date of our copy.
    """

    importance: bool = False
    lastmod: bool = True


class RankingTable(Table, frozen=True):
    """Ranking of the crawl's links. `every`: time between two rankings; None: no link is logged and nothing is ranked.

    `links`: where the link log is, a folder or an fsspec URL; None: beside the store or the repository.
    """

    every: PositiveDuration | None = None
    links: Text | None = None


class DiscoveryTable(Table, frozen=True):
    """How new URLs are found, and the limits against spider traps (`url_rules` describes them).

    `nofollow`: honour rel=nofollow, robots meta and X-Robots-Tag. `calendar_years`: pages of a calendar are followed up
    to this number of years after the current one.
    """

    nofollow: bool = True
    sitemaps: bool = True
    max_url_length: Annotated[int, msgspec.Meta(ge=50, le=65_536)] = MAX_URL_LENGTH
    max_repeated_segments: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    calendar_years: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 2


class RevisitTable(Table, frozen=True):
    """Bounds of the time between two fetches of a page. `max_interval` applies only to pages that were fetched."""

    min_interval: Duration = Duration(0)
    max_interval: PositiveDuration | None = None


class ScoreTable(Table, frozen=True):
    """Weights of the scores from which a page's importance is computed. The scores are relative to their means
    (`core.importance`).

    `pagerank` and `backlinks` come from the link graph. `trust` spreads from the seeds. `topic` is the similarity of a
    page's text to the policy's query. Before the page is fetched, `topic` is the similarity of its URL and of the words
    of links to it, if this is `topic.min_similarity` or more. `location` is the page's place in its site.
    """

    pagerank: Weight = 0.0
    trust: Weight = 0.0
    backlinks: Weight = 0.0
    topic: Weight = 0.0
    location: Weight = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """Return the scores that count, with their weights."""
        named = {name: float(getattr(self, name)) for name in self.__struct_fields__}
        return {name: weight for name, weight in named.items() if weight > 0}


class TopicTable(Table, frozen=True):
    """The topic of a policy: a page whose similarity to `query` is `min_similarity` or more is on topic.

    New pages come before all others if their URL or the text of a link to them is on topic, or if they are within three
    links of a page on topic.
    """

    query: Text
    min_similarity: Share = 0.1


class PolicyContentTable(Table, frozen=True):
    """`[content]` for the pages of one policy. An omitted key has the collection's value."""

    text: Literal["main", "all"] | None = None
    metadata: bool | None = None


class PolicyChangeTable(Table, frozen=True):
    """`[change]` for the pages of one policy. An omitted key has the collection's value."""

    min_change: Share | None = None
    select: tuple[Selector, ...] | None = None
    ignore: tuple[Selector, ...] | None = None
    ignore_text: tuple[Pattern, ...] | None = None
    ignore_kinds: tuple[IgnoredKind, ...] | None = None
    learn: bool | None = None
    always: tuple[Selector, ...] | None = None


class PolicyTable(Table, frozen=True):
    """Rules of the pages under one policy. Patterns are searched in the canonical URL; deny wins over allow, and an
    empty allow means all.

    `trust`: trust of the policy's seeds, and the upper bound of the trust of pages that come from another policy.
    `dampening`: factor per hop. `splitting`: a page's trust is divided among its links. `spread`: where a page's links
    inherit the policy; elsewhere they get `otherwise`. `follow`: whether links are accepted at all. `score`: the
    weights for the pages' importance; None: trust alone, if the collection's pages are ordered by trust. `extends`:
    policy that gives the keys omitted here.
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
    """Conditions that a fetched page must all meet: its text contains `text` at least `count` times; `status` is the
    status of its answer.

    `language`: its text is in one of these languages. `language_not`: its text is in a known language other than these.
    `similarity`: its similarity to the policy's topic is at least this. `similarity_below`: its similarity is less than
    this. Pages of a policy without a topic never meet these two conditions. `duplicates`: at least this share of its
    site's fetched pages are near-duplicates of other pages. `discovered`: at least this share of the fetched pages that
    were discovered through it, and at least `count` of them, were moved to the same policy. This condition must be the
    only one, because it is known long after the fetch."""

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
    """A rule that moves a page after a fetch that meets `when`: the page gets the policy `to`, and so do links found
    later.

    If `also` is "discovered", the pages that were discovered through it before get the policy too, and the pages
    discovered through those, and so on.
    """

    when: WhenTable
    to: Text
    also: Literal["linked", "discovered"] = "linked"


class ConflictTable(Table, frozen=True):
    """Policy of a page to which links give several: the policy of the link that `rule` selects by trust."""

    rule: ConflictRule = "first"


class RuleTable(Table, frozen=True):
    """Policy and trust of the pages of a host, or of pages whose URL matches a pattern, whichever page links to them.

    `trust` None: the trust of the policy. `policy` None: the inherited policy.
    """

    match: Text | tuple[Text, ...]
    policy: Text | None = None
    trust: Share | None = None

    @property
    def matches(self) -> tuple[str, ...]:
        """Hosts and patterns, of which at least one must match."""
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
