"""The tables of a policy file: one frozen struct each, one field per key, the default beside it.

The format is a promise (DESIGN.md section 8). What a key allows is said by its type; what two keys must keep
together is checked in `files`, which also reads the TOML and words the errors. Durations are seconds, sizes bytes.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

import msgspec

from webfountain.policy.units import Duration, PositiveDuration, Size
from webfountain.urls import MAX_URL_LENGTH

__all__ = [
    "PRESETS",
    "ChangeTable",
    "ChangesTable",
    "CollectionTable",
    "CycleTable",
    "DiscoveryTable",
    "LimitsTable",
    "NetworkTable",
    "PolicyFile",
    "PolicyTable",
    "PolitenessTable",
    "RepositoryTable",
    "RevisitTable",
    "Scope",
    "SeedTable",
    "SignalsTable",
    "Strategy",
    "SwitchTable",
    "WhenTable",
]

Scope = Literal["site", "domain", "any"]
Strategy = Literal[1, 2, 3, "fountain"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Pattern = re.Pattern[str]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all tables share: an unknown key is an error."""


class SeedTable(Table, frozen=True):
    """A seed with its policy, None: `collection.policy`."""

    url: Text
    policy: Text | None = None


class LimitsTable(Table, frozen=True):
    """`depth`: hops from a seed, 0 keeps the seeds alone."""

    depth: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 20


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

    Of `strategy = "fountain"` (`core.signals`): `siblings`, pages of a directory change together; `sections`, each
    directory has its own rate; `history`, each page has; `forgetting`, old evidence fades; `weekdays`, a site has busy
    days; `importance`, a page's freshness counts as much as the page. Of every strategy: `lastmod`, a sitemap or feed
    dates a page later than our copy.
    """

    siblings: bool = True
    sections: bool = True
    history: bool = True
    forgetting: bool = True
    weekdays: bool = False
    importance: bool = False
    lastmod: bool = True


class DiscoveryTable(Table, frozen=True):
    """How new URLs are found, and where a spider trap begins (`judge` and `traps` tell the rules).

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


class PolicyTable(Table, frozen=True):
    """Rules of the pages under one policy: patterns searched in the canonical URL, deny wins, empty allow is all.

    `trust`: of its seeds, and the most that a page gets that comes under it from another policy. `dampening`: the
    factor with each hop; `splitting`: whether a page's trust is divided among its links. `spread`: how far its links
    inherit it; beyond that they get `otherwise`. `follow`: whether its links are taken in at all.
    """

    trust: Share = 0.5
    dampening: Share = 1.0
    splitting: bool = False
    spread: Literal["site", "domain", "any"] = "any"
    otherwise: Text = "default"
    follow: bool = True
    allow: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    revisit: RevisitTable = RevisitTable()


PRESETS: Final[dict[str, dict[str, object]]] = {
    "default": {},
    "favor": {"trust": 1.0, "dampening": 0.85},
    "distrust": {"trust": 0.0, "follow": False},
}
"""The policies that exist unasked, after Policies 2006; a table of the same name changes single keys of them."""


class WhenTable(Table, frozen=True):
    """What a fetched page must show, all of it: `text` found `count` times in it, the `status` of its answer."""

    text: Pattern | None = None
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None


class SwitchTable(Table, frozen=True):
    """After a fetch that shows `when` the page is under the policy `to`, and those that it links are from then on."""

    when: WhenTable
    to: Text


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
    discovery: DiscoveryTable = DiscoveryTable()
    policies: dict[str, PolicyTable] = msgspec.field(default_factory=dict)
    switch: tuple[SwitchTable, ...] = ()
