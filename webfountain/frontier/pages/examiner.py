"""What a fetch means: for its page, and where it is a sitemap, for the pages that this names.

What a fetch means for its page: outcome, new record, links, text. The middle of the walk (DESIGN.md sections 3 and
4): body -> digest -> text, shingles -> verdict -> history and bucket byte; links judged by the policy. Pure but for
reading the old copy's text; the ant queues what it returns, so this may run in any thread.

A fetched sitemap becomes links to discover, pages to look at again, and sitemaps to fetch. Place in the walk: beside
the pages. URLs of a sitemap pass the same judge as links; they count as one hop from the seeds. A lastmod is believed
for pages of the site that named it only, and not when it lies in the future: that page would be due for ever. What
stands in the file is read by `formats.sitemap`; nothing here asks the store.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args

import msgspec

from webfountain import urls
from webfountain.core import change_rate
from webfountain.core.buckets import bucket_of
from webfountain.core.resemblance import NEAR, Topics, links_from_hot, sketch, unified, verdict
from webfountain.errors import RepositoryError
from webfountain.formats.content_type import content_type, language_of
from webfountain.formats.document import MAX_LINKS, LinksOf, ReadError
from webfountain.formats.sitemap import SitemapFile, read_sitemap
from webfountain.frontier.sites.politeness import page_backoff
from webfountain.policy.judge import Origin, Seen
from webfountain.records import Link, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webfountain.formats.document import Document, DocumentReader
    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetch, Fetched, Lease, OutcomeKind, PageRecord, State
    from webfountain.repository import Repository

__all__ = [
    "SITEMAP_DEPTH",
    "Examiner",
    "Judged",
    "Reading",
    "SitemapReading",
    "SitemapShelf",
    "Visit",
    "acknowledged",
    "counts_of",
    "digest_of",
    "leased",
    "old_text",
]

_Read = TypeVar("_Read")
Unreadable = ReadError | Literal["crashed"]
"""Why a page that came could not be examined: by its reader's word, or because processes died of it (`suspects`)."""
_UNREADABLE: frozenset[str] = frozenset({*get_args(ReadError), "crashed"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_ITEMS = frozenset({"new", "changed", "gone"})


@dataclass(slots=True, frozen=True)
class Reading:
    """What a body says: its title, its visible text, where it leads and what of that the policy refused."""

    title: str | None = None
    text: str = ""
    links: tuple[Link, ...] = ()
    links_seen: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    canonical: str | None = None
    """Another URL that the page says it is a form of."""
    nofollow: tuple[Link, ...] = ()
    """What it leads to and does not want followed; this and the next for the link log, where there is one."""
    unfollowed: tuple[Link, ...] = ()
    """The links that the policy refused."""


_NOTHING = Reading()


@dataclass(slots=True, frozen=True)
class Visit:
    """The end of one leased fetch: what to write, whom to tell, what to keep.

    `record` is the page's new record but for `copy`, which the repository gives. `watched` is the time in seconds
    since the check before (0 when this was none). For the change log: `resemblance` and `diff` (where the collection
    asks for one) of the new copy's text and the old one's, `target` is where a redirect leads.
    """

    fetched: Fetched
    kind: OutcomeKind
    record: PageRecord
    reading: Reading = _NOTHING
    watched: float = 0.0
    resemblance: float | None = None
    diff: str | None = None
    target: str | None = None

    @property
    def fetch(self) -> Fetch:
        """The request that this is the end of."""
        return self.fetched.fetch

    @property
    def outcome(self) -> Outcome:
        """What the store keeps of it, but for its copy and the number of its new links."""
        lease = self.fetched.fetch.lease
        assert lease is not None
        return Outcome(
            lease.id,
            self.kind,
            self.record,
            self.fetched.seconds,
            title=self.reading.title,
            resemblance=self.resemblance,
            target=self.target,
            diff=self.diff,
        )

    def item(self) -> dict[str, Any] | None:
        """What the spider yields: one plain item per new, changed or gone page, None for all else.

        A page that is still gone is no news.
        """
        if self.kind not in _ITEMS or (self.kind == "gone" and leased(self.fetch).state == "gone"):
            return None
        record = self.record
        return {
            "url": record.url,
            "site": self.fetch.site,
            "verdict": self.kind,
            "fetched": self.fetched.at,
            "status": record.status,
            "depth": record.depth,
            "digest": None if self.kind == "gone" else record.digest,
            "title": self.reading.title,
            "text": self.reading.text,
        }


class Judged(NamedTuple):
    """Of a visit the record that is to be settled, and the links that are to be followed: none of a duplicate."""

    record: PageRecord
    links: Sequence[Link]


class Examiner:
    """Judges the fetches of one collection. The same fetch gives the same visit, but for what words are rare by now.

    Parameters
    ----------
    reader : what has bodies read; it says when one could not be
    old_text : the visible text of a page's newest stored copy, None when there is none to be had
    duplicates : share of a site's pages that repeat others
    sketches : whether a copy's sketch is kept with its record, for who cannot read the copy; asked at each copy
    topics : what is learned of words, for policies that have a topic; several threads may teach it
    """

    def __init__(
        self,
        *,
        collection: Collection,
        judge: Judge,
        reader: DocumentReader,
        old_text: Callable[[PageRecord], str | None],
        duplicates: Callable[[str], float] = lambda _: 0.0,
        sketches: Callable[[], bool] = lambda: False,
        topics: Topics | None = None,
    ) -> None:
        self._judge = judge
        self._reader = reader
        self._old_text = old_text
        self._duplicates = duplicates
        self._sketches = sketches
        self._topics = Topics(threading.Lock()) if topics is None else topics
        self._period = collection.cycle.period_s
        self._fastest = collection.cycle.fastest_s
        self._min_change = collection.change.min_change
        self._diffs = collection.changes.diff
        self._logs_links = collection.ranking.every is not None

    def examine(self, fetched: Fetched, prior: change_rate.Prior) -> Visit:
        """The visit that a fetch of a leased page amounts to; `prior` is what is believed of pages of its site.

        It may take seconds: a body that is not ordinary is read elsewhere, and an old copy comes from the disk.
        """
        if fetched.status != 200:
            return self._unread(fetched, prior)
        digest = digest_of(fetched.body)
        if leased(fetched.fetch).digest == digest:
            return self._unchanged(fetched, "same", prior)
        return self._read(fetched, digest, self._document(fetched, self._reader.read), prior)

    def examine_at_once(self, fetched: Fetched, prior: change_rate.Prior) -> Visit | None:
        """As `examine`, where that takes some milliseconds whatever the body holds; else None."""
        if fetched.status != 200:
            return self._unread(fetched, prior)
        digest, before = digest_of(fetched.body), leased(fetched.fetch).digest
        if before == digest:
            return self._unchanged(fetched, "same", prior)
        if before is not None and (self._min_change > 0 or self._diffs):
            return None  # its text must be compared with the old copy's
        document = self._document(fetched, self._reader.read_at_once)
        return None if document is None else self._read(fetched, digest, document, prior)

    def unreadable(self, fetched: Fetched, error: Unreadable) -> Visit:
        """The visit of a page that came and could not be examined."""
        return self._without_copy(fetched, "failed", error)

    def _unread(self, fetched: Fetched, prior: change_rate.Prior) -> Visit:
        """The visit of a fetch that brought no page to read."""
        status = fetched.status
        if status == 304 and _is_conditional(fetched.fetch):
            return self._unchanged(fetched, "not_modified", prior)
        if status in _REDIRECTS:
            return self._redirected(fetched)
        if status in _GONE:
            return self._without_copy(fetched, "gone", None)
        return self._without_copy(fetched, "failed", fetched.error or f"status {status}")

    def refused(self, lease: Lease, kind: OutcomeKind, error: str, *, at: float) -> Outcome:
        """The end of a leased page that may not be asked: robots.txt, an edited policy, a private address."""
        failures = lease.record.failures + 1
        due = at + page_backoff(failures, period=self._period)
        record = msgspec.structs.replace(lease.record, state="refused", error=error, failures=failures, due=due)
        return Outcome(lease.id, kind, record)

    def unkept(self, lease: Lease, at: float) -> Outcome:
        """The end of a leased page of which nothing could be written, discovered or settled."""
        failures = lease.record.failures + 1
        due = at + page_backoff(failures, period=self._period)
        state: State = "failed" if lease.record.state == "never-crawled" else lease.record.state
        record = msgspec.structs.replace(lease.record, state=state, error="unkept", failures=failures, due=due)
        return Outcome(lease.id, "failed", record)

    def _read(self, fetched: Fetched, digest: str, document: Document, prior: change_rate.Prior) -> Visit:
        """The visit of a new body, once it was read."""
        if document.error is not None:
            return self._without_copy(fetched, "failed", document.error)
        record = leased(fetched.fetch)
        record = self._on_topic(self._switched(record, self._seen(fetched, document, record)), document)
        reading = self._reading(fetched, document, record)
        if record.digest is None:
            bucket = bucket_of(prior.interval, self._fastest)
            new = self._copied(record, fetched, digest, reading.text, "new", bucket=bucket)
            return Visit(fetched, "new", new, reading)
        old_text = functools.cache(lambda: self._old_text(record))
        outcome, resemblance = verdict(
            record.digest,
            digest,
            min_change=self._min_change,
            text=reading.text,
            old_text=old_text,
            old_sketch=record.sketch,
        )
        before = old_text() if self._diffs else None
        diff = None if before is None else unified(before, reading.text)
        checked = self._checked(record, fetched.at, prior, changed=outcome == "changed")
        copied = self._copied(record, fetched, digest, reading.text, outcome, **checked)
        return Visit(fetched, outcome, copied, reading, _since(record, fetched.at), resemblance, diff)

    def _copied(
        self, record: PageRecord, fetched: Fetched, digest: str, text: str, kind: OutcomeKind, **changes: Any
    ) -> PageRecord:
        """The record of a page whose copy is replaced by this fetch."""
        return _crawled(
            record,
            fetched,
            kind,
            digest=digest,
            etag=fetched.header("etag"),
            last_modified=fetched.header("last-modified"),
            copied=fetched.at,
            sketch=sketch(text) if self._min_change > 0 and self._sketches() else None,
            **changes,
        )

    def _unchanged(self, fetched: Fetched, kind: OutcomeKind, prior: change_rate.Prior) -> Visit:
        record = leased(fetched.fetch)
        checked = self._checked(record, fetched.at, prior, changed=False)
        # A 304 may carry new validators (RFC 9110 section 15.4.5); those it leaves out stay.
        validators = {
            "etag": fetched.header("etag") or record.etag,
            "last_modified": fetched.header("last-modified") or record.last_modified,
        }
        kept = _crawled(record, fetched, kind, **validators, **checked)
        return Visit(fetched, kind, kept, watched=_since(record, fetched.at))

    def _checked(self, record: PageRecord, at: float, prior: change_rate.Prior, *, changed: bool) -> dict[str, Any]:
        """History and bucket byte after one more check."""
        history = change_rate.append(record.history, _since(record, at), changed)
        checks, changes = record.checks + 1, record.changes + changed
        totals = change_rate.Totals(checks, changes, at - record.first_seen)
        interval = change_rate.estimate_interval(history, totals=totals, prior=prior)
        return {
            "history": history,
            "checks": checks,
            "changes": changes,
            "bucket": bucket_of(interval, self._fastest),
            "last_changed": at if changed else record.last_changed,
        }

    def _redirected(self, fetched: Fetched) -> Visit:
        """A redirect is a link and a record of its source (never followed inside the downloader)."""
        record = leased(fetched.fetch)
        target = urls.join(record.url, fetched.location) if fetched.location else None
        if target is None or target == record.url:
            return self._without_copy(fetched, "failed", "redirect-loop" if target else "bad-redirect")
        links, refused, unfollowed = self._judged([target], fetched.fetch, "redirect", record)
        if record.scores:  # the same page elsewhere
            links = tuple(
                link
                if self._judge.policy(link.policy).topic is None
                else msgspec.structs.replace(link, scores=record.scores)
                for link in links
            )
        reading = Reading(links=links, links_seen=1, refused=refused, unfollowed=unfollowed)
        return self._without_copy(fetched, "redirected", None, reading, target)

    def _without_copy(
        self,
        fetched: Fetched,
        kind: OutcomeKind,
        error: str | None,
        reading: Reading = _NOTHING,
        target: str | None = None,
    ) -> Visit:
        """Gone, failed, redirected: the copy of before stays, the next try backs off."""
        record = self._switched(leased(fetched.fetch), Seen(fetched.status))
        failures = record.failures + 1
        state: State = "redirected" if kind == "redirected" else "gone" if kind == "gone" else "failed"
        if kind == "failed" and record.state in ("crawled", "gone", "redirected"):
            state = record.state  # it was fetched well once; one bad day does not make it never fetched
        settled = msgspec.structs.replace(
            record,
            state=state,
            verdict=kind,
            status=fetched.status,
            error=error,
            failures=failures,
            due=fetched.at + page_backoff(failures, period=self._period),
            last_crawled=record.last_crawled if kind == "failed" else fetched.at,
        )
        return Visit(fetched, kind, settled, reading, target=target)

    def _document(self, fetched: Fetched, read: Callable[..., _Read]) -> _Read:
        """What a page says, by one of the reader's two ways."""
        kind, header = content_type(fetched.headers), fetched.header("x-robots-tag")
        anchors = self._judge.follows_topics(leased(fetched.fetch).policy)
        return read(fetched.body, kind, LinksOf(fetched.fetch.url, header, anchors, self._logs_links))

    def _seen(self, fetched: Fetched, document: Document, record: PageRecord) -> Seen:
        """What a page shows, as far as anybody asks."""
        judge, text = self._judge, document.text
        asked = judge.asks
        if not asked:
            return Seen(fetched.status, text)
        language, similarity = None, None
        if "language" in asked:
            language = language_of(text, document.language or fetched.header("content-language"))
        if "similarity" in asked and text:
            topic = judge.policy(record.policy).topic
            similarity = None if topic is None else self._topics.similarity(topic.query, text)
        share = self._duplicates(fetched.fetch.site) if "duplicates" in asked else 0.0
        return Seen(fetched.status, text, language, similarity, share)

    def _switched(self, record: PageRecord, seen: Seen) -> PageRecord:
        """The record under the policy that its page shows to be right: what it links from then on inherits that."""
        switch = self._judge.switched(record.policy, seen)
        if switch is None:
            return record
        trust = min(record.trust, self._judge.policy(switch.to).trust)
        return msgspec.structs.replace(record, policy=switch.to, trust=trust)

    def _on_topic(self, record: PageRecord, document: Document) -> PageRecord:
        """The record with what its page's text has to do with the topic of its policy, if that has one."""
        topic = self._judge.policy(record.policy).topic
        if topic is None:
            return record if not record.scores else msgspec.structs.replace(record, scores=())
        similarity = self._topics.similarity(topic.query, document.text)
        if record.digest is None:
            self._topics.learn(document.text)
        far = 0.0 if similarity >= topic.min_similarity else links_from_hot(record.scores)
        return msgspec.structs.replace(record, scores=(similarity, far))

    def _reading(self, fetched: Fetched, document: Document, record: PageRecord) -> Reading:
        """What a page says, its links judged."""
        links, refused, unfollowed = self._judged(document.links, fetched.fetch, "link", record)
        if document.anchors:
            links = self._promising(links, dict(zip(document.links, document.anchors, strict=True)), record)
        if len(document.links) >= MAX_LINKS:
            refused["links/too_many"] = 1
        seen, nofollow = len(document.links), tuple(map(_logged, document.nofollow))
        return Reading(document.title, document.text, links, seen, refused, document.canonical, nofollow, unfollowed)

    def _judged(
        self, found: Sequence[str], fetch: Fetch, kind: Literal["link", "redirect"], record: PageRecord
    ) -> tuple[tuple[Link, ...], dict[str, int], tuple[Link, ...]]:
        """The links that the policy of the page lets in, how many it refused by reason, and these for the log."""
        depth = record.depth + (kind == "link")
        refused: dict[str, int] = {}
        links, unfollowed = [], []
        fingerprint = urls.fingerprint
        source, home = fetch.url, fetch.site
        near = home + "/"
        sites: dict[str, str] = {}  # one string for all links of a site: it is hashed once on the long way from here
        verdicts = self._judge.judge(found, Origin(kind, depth, record.policy, record.trust, source))
        last = None
        for url, judged in zip(found, verdicts, strict=True):
            if judged is not last:  # nearly all links of a page have one verdict
                last, (policy, trust, reason), worth = judged, judged, self._judge.importance(judged)
            if reason is None:
                if url.startswith(near):
                    site = home
                else:
                    site = url[: url.find("/", 8)]
                    site = sites.setdefault(site, site)
                links.append(Link(url, site, fingerprint(url), depth, policy, worth, source, None, trust))
            else:
                refused[f"judge/{reason}"] = refused.get(f"judge/{reason}", 0) + 1
                if self._logs_links:
                    unfollowed.append(_logged(url))
        return tuple(links), refused, tuple(unfollowed)

    def _promising(self, links: Sequence[Link], anchors: Mapping[str, str], record: PageRecord) -> tuple[Link, ...]:
        """The links of a page with their texts, and what those under a policy with a topic promise by their words.

        What the page itself is worth is passed on: how many links they are from a page on topic.
        """
        far = links_from_hot(record.scores) + 1
        found = []
        for link in links:
            topic, anchor = self._judge.policy(link.policy).topic, anchors.get(link.url, "")
            promised = 0.0 if topic is None else self._topics.promise(topic.query, link.url, anchor)
            says = topic is not None and (promised > 0.0 or far <= NEAR)
            scores = (promised, far) if says else ()
            found.append(msgspec.structs.replace(link, scores=scores, anchor=anchor) if scores or anchor else link)
        return tuple(found)


def _logged(url: str) -> Link:
    """A link that nobody follows."""
    return Link(url, urls.site_of(url), urls.fingerprint(url))


def counts_of(visit: Visit) -> dict[str, float]:
    """What the stats count of a visit, by name."""
    fetched = visit.fetched
    counts: dict[str, float] = {
        f"outcome/{visit.kind}": 1,
        "fetch/bytes": len(fetched.body),
        "fetch/seconds": fetched.seconds,
        "links/seen": visit.reading.links_seen,
        **visit.reading.refused,
    }
    if fetched.status is not None:
        counts[f"fetch/status/{fetched.status}"] = 1
    if fetched.error is not None or visit.record.error in _UNREADABLE:
        counts[f"fetch/error/{visit.record.error}"] = 1
    if visit.kind in ("changed", "minor"):
        counts["change/compared"] = 1
    return counts


def leased(fetch: Fetch) -> PageRecord:
    """The record that a page's fetch carries."""
    assert fetch.lease is not None, f"{fetch.url} was fetched without a lease"
    return fetch.lease.record


def acknowledged(lease: Lease, *, status: int | None, error: str | None, at: float, seconds: float = 0.0) -> Outcome:
    """The end of another project's request, and of what is known of a site that was given up: not made again."""
    record = msgspec.structs.replace(
        lease.record,
        state="crawled" if error is None else "failed",
        status=status,
        error=error,
        last_crawled=at,
        due=None if error is None else inf,
    )
    return Outcome(lease.id, "new" if error is None else "failed", record, seconds)


def _is_conditional(fetch: Fetch) -> bool:
    """Whether we sent a validator, so that 304 means our copy."""
    return fetch.etag is not None or fetch.last_modified is not None


def digest_of(body: bytes) -> str:
    """Hex SHA-1 of a body after content decoding: an identity, not a protection."""
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def old_text(repository: Repository | None, reader: DocumentReader, record: PageRecord) -> str | None:
    """Text of a page's newest stored copy; None when there is no repository, the copy is lost or cannot be read."""
    if repository is None or record.copy is None:
        return None
    try:
        stored = repository.read(record.copy, record.url)
    except RepositoryError:
        return None
    document = reader.read(stored.body, content_type(stored.headers))
    return None if document.error is not None else document.text


def _since(record: PageRecord, at: float) -> float:
    """Seconds since the page was last crawled well."""
    return at - (record.last_crawled if record.last_crawled is not None else at)


def _crawled(record: PageRecord, fetched: Fetched, kind: OutcomeKind, **changes: Any) -> PageRecord:
    """The record of a page whose copy is known to be the live one now."""
    return msgspec.structs.replace(
        record,
        state="crawled",
        verdict=kind,
        status=fetched.status,
        error=None,
        failures=0,
        due=None,
        last_crawled=fetched.at,
        **changes,
    )


SITEMAP_DEPTH: Final = 1
"""Hops from a seed: the site vouches for its pages as a seed's links do."""


class SitemapReading(msgspec.Struct, frozen=True):
    """What one sitemap says.

    links : never mind whether known, judged, each once. modified : key on the site that named it -> UTC seconds
    of the page's last change. children : canonical URLs of further sitemaps. counts : by stat name.
    """

    links: list[Link]
    modified: dict[bytes, float]
    children: list[str]
    counts: Mapping[str, int]


class SitemapShelf:
    """Reads sitemaps for one collection; `believe_dates` False leaves the dates of change aside.

    `read_file` reads a body, or says in a word why it cannot be read.
    """

    __slots__ = ("_believe_dates", "_judge", "_read_file")

    def __init__(
        self,
        judge: Judge,
        *,
        believe_dates: bool = True,
        read_file: Callable[[bytes], SitemapFile | ReadError] = read_sitemap,
    ) -> None:
        self._judge = judge
        self._believe_dates = believe_dates
        self._read_file = read_file

    def read(self, fetched: Fetched, *, site: str, at: float) -> SitemapReading:
        """Understand the end of a sitemap fetch, whatever it was; an unanswered one says nothing.

        `site` named it: its own pages' dates are believed, also where the sitemap lies elsewhere.
        """
        counts: Counter[str] = Counter()
        if fetched.error is not None or fetched.status is None or not 200 <= fetched.status < 300:
            counts["sitemap/failed"] += 1
            return SitemapReading([], {}, [], counts)
        found = self._read_file(fetched.body) if fetched.reading is None else fetched.reading
        if isinstance(found, str):
            counts[f"sitemap/error/{found}"] += 1
            return SitemapReading([], {}, [], counts)
        if found.error is not None:
            counts[f"sitemap/error/{found.error}"] += 1
        return self._judged(found, fetched, site, at, counts)

    def _judged(
        self, found: SitemapFile, fetched: Fetched, own: str, at: float, counts: Counter[str]
    ) -> SitemapReading:
        base = fetched.fetch.url
        times = _joined(base, found.pages, counts)
        counts["sitemap/urls"] += len(times)
        verdicts = self._judge.judge(list(times), self._judge.sitemap(own, depth=SITEMAP_DEPTH))
        links = []
        for url, judged in zip(times, verdicts, strict=True):
            if judged.reason is None:
                links.append(
                    Link(
                        url,
                        urls.site_of(url),
                        urls.fingerprint(url),
                        SITEMAP_DEPTH,
                        judged.policy,
                        importance=self._judge.importance(judged),
                        trust=judged.trust,
                    )
                )
            else:
                counts[f"judge/{judged.reason}"] += 1
        modified = {
            link.key: time
            for link in links
            if self._believe_dates and link.site == own and (time := times[link.url]) is not None and time <= at
        }
        children = _joined(base, ((url, None) for url in found.sitemaps), counts)
        return SitemapReading(links, modified, list(children), counts)


def _joined(base: str, entries: Iterable[tuple[str, float | None]], counts: Counter[str]) -> dict[str, float | None]:
    """Canonical URL -> time, each URL once, the last time wins; what is no URL is counted."""
    joined: dict[str, float | None] = {}
    for written, time in entries:
        url = urls.join(base, written)
        if url is None:
            counts["sitemap/error/bad_url"] += 1
        else:
            joined[url] = time
    return joined
