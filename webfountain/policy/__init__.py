"""What belongs to a collection, and how it is crawled: as people write it, and as every URL is judged by it.

Life of a policy file. It is read and checked against its tables (`files`): a `Collection`, or one line that names file,
key and value. A judge is built of it once (`judge`) and asked for every URL, in batches: which policy it gets, how far
it is trusted, or why it is refused. The file is polled while the crawl runs; an edited one takes effect between two
batches, a wrong one is refused and the old one stays. Nothing in this room knows a store or a queue.

Here are the tables of a policy file: one frozen struct each, one field per key, the default beside it. The format is a
promise (DESIGN.md section 8). What a key allows is said by its type; what two keys must keep together is checked in
`files`, which also reads the TOML and words the errors. Durations and sizes are written as people write them,
``"15m"``, ``"10MB"``; the parsed values are numbers (seconds, bytes) of a type of their own, so that a table says what
it holds.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

import msgspec

from webfountain.urls import MAX_URL_LENGTH

__all__ = [
    "DURATION_FORM",
    "PRESETS",
    "SIZE_FORM",
    "ChangeTable",
    "ChangesTable",
    "CollectionTable",
    "ConflictRule",
    "ConflictTable",
    "CycleTable",
    "DiscoveryTable",
    "DuplicatesTable",
    "Duration",
    "LimitsTable",
    "NetworkTable",
    "PolicyFile",
    "PolicyTable",
    "PolitenessTable",
    "PositiveDuration",
    "RankingTable",
    "RepositoryTable",
    "RevisitTable",
    "Scope",
    "ScoreTable",
    "SeedTable",
    "SignalsTable",
    "Size",
    "Strategy",
    "SwitchTable",
    "TopicTable",
    "WhenTable",
    "spell_duration",
    "spell_size",
]

DURATION_FORM: Final = 'a number with ms, s, m, h, d or w, as "1.5h"'
SIZE_FORM: Final = 'a number with kB, MB, GB or TB, powers of 1000, as "10MB"'

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_BYTES: Final = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_NUMBER: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]{1,2})", re.ASCII)


def _read(value: object, units: dict[str, float] | dict[str, int], form: str) -> float:
    """Number times unit; ValueError says what is allowed."""
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"(allowed: {form})")
    return float(found[1]) * units[found[2]]


class Duration(float):
    """A time span in seconds, 0 or longer."""

    @classmethod
    def parse(cls, value: object) -> Duration:
        """A duration from its notation; ValueError when it is none."""
        return cls(_read(value, _SECONDS, DURATION_FORM))


class PositiveDuration(Duration):
    """A time span in seconds, longer than 0."""

    @classmethod
    def parse(cls, value: object) -> PositiveDuration:
        """A duration from its notation; ValueError when it is none, or 0."""
        seconds = _read(value, _SECONDS, DURATION_FORM)
        if not seconds:
            raise ValueError(f"(allowed: {DURATION_FORM}, longer than 0)")
        return cls(seconds)


class Size(int):
    """A number of bytes, at least 1."""

    @classmethod
    def parse(cls, value: object) -> Size:
        """A size from its notation; ValueError when it is none, or below one byte."""
        size = cls(round(_read(value, _BYTES, SIZE_FORM)))
        if size < 1:
            raise ValueError(f"(allowed: {SIZE_FORM}, at least one byte)")
        return size


def spell_duration(seconds: float) -> str:
    """The notation of a duration in its largest unit that leaves a whole number, else in s or ms."""
    for unit in ("w", "d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds * 1000:g}ms" if 0 < seconds < 1 else f"{seconds:.12g}s"


def spell_size(size: int) -> str:
    """The notation of a size in its largest unit that leaves a whole number, else in kB."""
    for unit in ("TB", "GB", "MB"):
        if size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size / 1000:.12g}kB"


Scope = Literal["site", "domain", "any"]
Strategy = Literal[1, 2, 3, "fountain"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Pattern = re.Pattern[str]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=1000)]
Language = Annotated[str, msgspec.Meta(pattern="^[a-z]{2,3}$")]
"""ISO 639, as the primary subtag of the `lang` of HTML."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all tables share: an unknown key is an error."""


class SeedTable(Table, frozen=True):
    """A seed with its policy, None: `collection.policy`."""

    url: Text
    policy: Text | None = None


class LimitsTable(Table, frozen=True):
    """`depth`: hops from a seed, 0 keeps the seeds alone.

    `pages`: how many the collection holds at most; None: it grows. `domain_share`: the part of a period's fetches that
    one registered domain may have; None: any.
    """

    depth: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 20
    pages: Annotated[int, msgspec.Meta(ge=1)] | None = None
    domain_share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class CollectionTable(Table, frozen=True):
    """Which pages: seeds, and the scope of links, redirects and sitemap URLs that are kept."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")]
    seeds: tuple[str | SeedTable, ...] = ()
    seeds_file: Text | None = None
    scope: Scope = "site"
    policy: Text = "default"
    limits: LimitsTable = LimitsTable()


class PolitenessTable(Table, frozen=True):
    """How a site is asked: next request after max(min_delay, delay_factor x duration, Crawl-delay up to max_delay)."""

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
        """The name that robots.txt knows us by: the first token of `user_agent`."""
        return re.split(r"[/\s]", self.user_agent, maxsplit=1)[0]

    @property
    def has_contact(self) -> bool:
        """Whether `user_agent` tells a site's owner whom to write to: a URL or an e-mail address."""
        return re.search(r"https?://[^\s/]|[^\s@(<]@[^\s@]+\.[a-z]", self.user_agent) is not None


class NetworkTable(Table, frozen=True):
    """`allow_private`: whether loopback and private addresses may be asked."""

    allow_private: bool = False


class ChangeTable(Table, frozen=True):
    """A change counts when resemblance < 1 - `min_change`; 0: when any byte differs."""

    min_change: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05


class ChangesTable(Table, frozen=True):
    """The change log: how long and how many entries are kept, and whether they hold a diff of the texts."""

    diff: bool = False
    keep: PositiveDuration = PositiveDuration(30 * 86_400)
    max_entries: Annotated[int, msgspec.Meta(ge=1)] = 1_000_000


class DuplicatesTable(Table, frozen=True):
    """Pages that repeat others, on any site: whether they are detected, from which resemblance on, how rarely asked.

    `revisit` None: every 30 periods (`Collection.duplicates_revisit_s`).
    """

    detect: bool = False
    resemblance: Annotated[float, msgspec.Meta(ge=0.5, le=1)] = 0.9
    revisit: PositiveDuration | None = None


class RepositoryTable(Table, frozen=True):
    """What stays on disk; no `max_bytes`: no bound. `answers` None: as `keep_answers` says."""

    keep: Literal["newest", "all"] = "newest"
    max_bytes: Size | None = None
    answers: bool | None = None

    @property
    def keep_answers(self) -> bool:
        """Whether answers that are no copy are recorded: redirects, what is gone, errors, robots.txt, sitemaps."""
        return self.keep == "all" if self.answers is None else self.answers


class CycleTable(Table, frozen=True):
    """The time that is planned together; `fastest` is the change interval of bucket 0."""

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
        """Mean change interval of bucket 0, seconds: period/96 unless set (15 minutes of a day)."""
        return self.period / 96 if self.fastest is None else float(self.fastest)

    @property
    def cycle_s(self) -> float:
        """Length of a cycle, seconds."""
        return self.period * self.periods


class SignalsTable(Table, frozen=True):
    """What tells that a page may have changed, beside its own rate; each can be switched off to see its worth.

    Of `strategy = "fountain"` (`core.activity.Signals`): `siblings`, pages of a directory change together; `sections`,
    each directory has its own rate; `history`, each page has; `forgetting`, old evidence fades; `weekdays`, a site has
    busy days; `importance`, a page's freshness counts as much as the page. Of every strategy: `lastmod`, a sitemap or
    feed dates a page later than our copy.
    """

    siblings: bool = True
    sections: bool = True
    history: bool = True
    forgetting: bool = True
    weekdays: bool = False
    importance: bool = False
    lastmod: bool = True


class RankingTable(Table, frozen=True):
    """`every`: how often the crawl's links are ranked anew, None: no link is logged and nothing ranked.

    `links`: where the link log lies, a folder or an fsspec URL; None: beside the store or the repository.
    """

    every: PositiveDuration | None = None
    links: Text | None = None


class DiscoveryTable(Table, frozen=True):
    """How new URLs are found, and where a spider trap begins (`judge` tells the rules).

    `nofollow`: honour rel=nofollow, robots meta and X-Robots-Tag. `calendar_years`: how far ahead of today the
    pages of a calendar are followed.
    """

    nofollow: bool = True
    sitemaps: bool = True
    max_url_length: Annotated[int, msgspec.Meta(ge=50, le=65_536)] = MAX_URL_LENGTH
    max_repeated_segments: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    calendar_years: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 2


class RevisitTable(Table, frozen=True):
    """Bounds of the time between two fetches of a page; `max_interval` binds crawled pages only."""

    min_interval: Duration = Duration(0)
    max_interval: PositiveDuration | None = None


class ScoreTable(Table, frozen=True):
    """What a page's importance is made of: weights of scores that are relative to their means (`core.rank`).

    `pagerank` and `backlinks` of the link graph, `trust` as it spreads from the seeds, `topic` the similarity to the
    policy's query of a page's text, or before it was fetched of the words of its links and URL, where that is
    `topic.min_similarity` or more, `location` the page's place in its site.
    """

    pagerank: Weight = 0.0
    trust: Weight = 0.0
    backlinks: Weight = 0.0
    topic: Weight = 0.0
    location: Weight = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """The scores that count, with their weights."""
        named = {name: float(getattr(self, name)) for name in self.__struct_fields__}
        return {name: weight for name, weight in named.items() if weight > 0}


class TopicTable(Table, frozen=True):
    """What a collection is about: a page whose similarity to `query` is `min_similarity` or more is on topic.

    New pages go before all others that a link's text or their URL says are, or that are within three links of one.
    """

    query: Text
    min_similarity: Share = 0.1


class PolicyTable(Table, frozen=True):
    """Rules of the pages under one policy: patterns searched in the canonical URL, deny wins, empty allow is all.

    `trust`: of its seeds, and the most that a page gets that comes under it from another policy. `dampening`: the
    factor with each hop; `splitting`: whether a page's trust is divided among its links. `spread`: how far its links
    inherit it; beyond that they get `otherwise`. `follow`: whether its links are taken in at all. `score`: what its
    pages' importance is made of, None: trust alone, where policies tell pages apart by it.
    """

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


PRESETS: Final[dict[str, dict[str, object]]] = {
    "default": {},
    "favor": {"trust": 1.0, "dampening": 0.85},
    "distrust": {"trust": 0.0, "follow": False},
}
"""The policies that exist unasked, after Policies 2006; a table of the same name changes single keys of them."""


class WhenTable(Table, frozen=True):
    """What a fetched page must show, all of it: `text` found `count` times in it, the `status` of its answer.

    `language`: its text is in one of these; `language_not`: it is in a known language that is none of these.
    `similarity`: to its policy's topic, at least; `similarity_below`: less than that; neither is met under a policy
    without a topic. `duplicates`: the share of its site's fetched pages that are near-duplicates of others, at least.
    `discovered`: of the pages that were discovered through it and have been fetched, the share that was switched to
    the same policy, at least, and `count` of them; it stands alone, for it is known long after the fetch.
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
    """After a fetch that shows `when` the page is under the policy `to`, and those that it links are from then on.

    `also` "discovered": so are those that were discovered through it before, and through them, and so on.
    """

    when: WhenTable
    to: Text
    also: Literal["linked", "discovered"] = "linked"


ConflictRule = Literal["first", "most-trusted", "least-trusted"]


class ConflictTable(Table, frozen=True):
    """Which policy a page has that is found under several: that of the link that brings the `rule`'s trust."""

    rule: ConflictRule = "first"


class PolicyFile(Table, frozen=True):
    """A whole policy file as written."""

    collection: CollectionTable
    politeness: PolitenessTable = PolitenessTable()
    network: NetworkTable = NetworkTable()
    change: ChangeTable = ChangeTable()
    changes: ChangesTable = ChangesTable()
    repository: RepositoryTable = RepositoryTable()
    cycle: CycleTable = CycleTable()
    signals: SignalsTable = SignalsTable()
    ranking: RankingTable = RankingTable()
    discovery: DiscoveryTable = DiscoveryTable()
    duplicates: DuplicatesTable = DuplicatesTable()
    policies: dict[str, PolicyTable] = msgspec.field(default_factory=dict)
    switch: tuple[SwitchTable, ...] = ()
    conflict: ConflictTable = ConflictTable()
