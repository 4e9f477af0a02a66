"""Turn a fetch into its page's outcome, new record, links and text.

The examiner computes a body's digest, text and shingles, compares the body with the old copy, and updates the page's
record. The examiner writes nothing to the store or the disk, so it may run in any thread.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from webfountain import urls
from webfountain.core import change_rate
from webfountain.core.sketch import sketch
from webfountain.core.topics import Topics
from webfountain.formats.document import ReadError
from webfountain.formats.links import LinkSource
from webfountain.formats.media_type import content_type
from webfountain.formats.page_hints import MAX_HINTED_TEXT, hint_of_page, hint_of_redirect
from webfountain.frontier.pages.page_comparison import counted_digest, counted_text, is_outdated
from webfountain.frontier.pages.page_judge import PageJudge, switched
from webfountain.frontier.planning.schedule import page_backoff
from webfountain.frontier.visit import NOTHING, PageContent, Visit, leased
from webfountain.policy.switches import PageFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.formats.document import Document, DocumentReader
    from webfountain.frontier.pages.page_comparison import PageComparison
    from webfountain.policy.collection import Collection
    from webfountain.policy.counting import CountingRules
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetch, FetchResult, OutcomeKind, PageRecord, State

__all__ = ["MAX_HOPS", "Examiner", "Unreadable", "digest_of"]

_Read = TypeVar("_Read")
Unreadable = ReadError | Literal["crashed"]
"""Why a fetched page could not be examined: an error word of the reader, or "crashed" if processes crashed while they
read it.
"""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
MAX_HOPS: Final = 20
"""Maximum number of redirects in a chain, as in browsers."""


class Examiner:
    """Examines the fetches of one collection.

    Parameters
    ----------
    reader : reads bodies, and returns an error for an unreadable body
    comparison : compares a new body with the stored copy
    duplicates : returns the share of a site's pages that repeat others
    sketches : returns whether to store a copy's sketch with its record, for processes that cannot read the copy; called
        for each copy
    unlogged : returns whether a page's links must be read again even if the page is unchanged
    topics : word counts, for policies that have a topic; several threads may update them
    """

    def __init__(
        self,
        *,
        collection: Collection,
        judge: Judge,
        reader: DocumentReader,
        comparison: PageComparison,
        duplicates: Callable[[str], float] = lambda _: 0.0,
        sketches: Callable[[], bool] = lambda: False,
        unlogged: Callable[[PageRecord], bool] = lambda _: False,
        topics: Topics | None = None,
    ) -> None:
        topics = Topics(threading.Lock()) if topics is None else topics
        self._judge = judge
        self._reader = reader
        self._comparison = comparison
        self._sketches = sketches
        self._unlogged = unlogged
        self._logs_links = collection.ranking.every is not None
        self._pages = PageJudge(judge, topics, duplicates=duplicates, logs=self._logs_links)
        self._period = collection.cycle.period_s
        self._diffs = collection.changes.diff

    def examine(self, fetched: FetchResult) -> Visit:
        """Examine the fetch of a leased page.

        The call may take seconds: another process may have to read the body, and the old copy is on the disk.
        """
        if fetched.status != 200:
            return self._unread(fetched)
        digest, record = digest_of(fetched.body), leased(fetched.fetch)
        if record.digest != digest:
            rules = self._judge.policies.counting[record.policy]
            document = self._document(fetched, record, rules, self._reader.read)
            return self._read(fetched, record, digest, document, rules)
        visit = self._unchanged(fetched, record, "same")
        if self._unlogged(record):
            rules = self._judge.policies.counting[record.policy]
            return self._with_links(visit, self._document(fetched, record, rules, self._reader.read))
        return visit

    def examine_at_once(self, fetched: FetchResult) -> Visit | None:
        """Examine a page like `examine`, but return None if this could take more than a few milliseconds."""
        record = leased(fetched.fetch)
        rules = self._judge.policies.counting[record.policy]
        must_read_copy = record.digest is not None and is_outdated(record, rules)
        if fetched.status != 200:
            return None if must_read_copy and fetched.status == 304 else self._unread(fetched)
        digest = digest_of(fetched.body)
        if record.digest == digest:
            return None if must_read_copy or self._unlogged(record) else self._unchanged(fetched, record, "same")
        is_compared = rules.min_change > 0 or rules.by_lines or self._diffs or record.counted
        if record.digest is not None and is_compared:
            return None  # it must be compared with the old copy
        document = self._document(fetched, record, rules, self._reader.read_at_once)
        return None if document is None else self._read(fetched, record, digest, document, rules)

    def unreadable(self, fetched: FetchResult, error: Unreadable) -> Visit:
        """Return the visit for a page that could not be examined."""
        return self._without_copy(fetched, "failed", error)

    def _unread(self, fetched: FetchResult) -> Visit:
        """Return the visit for an error, or for an answer with any status but 200."""
        status = fetched.status
        if status == 304 and _is_conditional(fetched.fetch):
            return self._unchanged(fetched, leased(fetched.fetch), "not_modified")
        if status in _REDIRECTS:
            return self._redirected(fetched)
        if status in _GONE:
            return self._without_copy(fetched, "gone", None)
        return self._without_copy(fetched, "failed", fetched.error or f"status {status}")

    def _read(
        self,
        fetched: FetchResult,
        record: PageRecord,
        digest: str,
        document: Document,
        rules: CountingRules,
    ) -> Visit:
        """Return the visit for a page whose new body has been read."""
        if document.error is not None:
            return self._without_copy(fetched, "failed", document.error)
        record, reading = self._pages.judged(fetched, document, record)
        self._count_visit(fetched)
        if record.digest is None:
            counted = counted_digest(document, rules) if rules.by_lines else b""
            new = self._copied(record, fetched, digest, document, rules, kind="new", counted=counted)
            return Visit(fetched, "new", new, reading)
        (outcome, resemblance), diff, counted, noise, due = self._comparison.compare(
            record, fetched, digest, document, rules
        )
        checked = _checked(record, fetched.at, changed=outcome == "changed")
        checked |= {"counted": counted, "noise": noise, "due": due}
        copied = self._copied(record, fetched, digest, document, rules, kind=outcome, **checked)
        return Visit(fetched, outcome, copied, reading, _since(record, fetched.at), resemblance, diff)

    def _copied(
        self,
        record: PageRecord,
        fetched: FetchResult,
        digest: str,
        document: Document,
        rules: CountingRules,
        *,
        kind: OutcomeKind,
        **changes: Any,
    ) -> PageRecord:
        """Return the new record of a page that gets a new copy."""
        headers, text = _headers_of(fetched), document.text
        return _crawled(
            record,
            fetched,
            kind,
            digest=digest,
            etag=headers.get("etag"),
            last_modified=headers.get("last-modified"),
            copied=fetched.at,
            hint=hint_of_page(fetched.body, text) if len(text) < MAX_HINTED_TEXT else None,
            sketch=sketch(counted_text(document, rules)) if rules.min_change > 0 and self._sketches() else None,
            metadata=b"" if document.metadata is None else msgspec.msgpack.encode(document.metadata),
            **changes,
        )

    def _unchanged(self, fetched: FetchResult, record: PageRecord, kind: OutcomeKind) -> Visit:
        checked = _checked(record, fetched.at, changed=False)
        # A 304 may carry new validators (RFC 9110 section 15.4.5). Missing ones keep their old values.
        headers = _headers_of(fetched)
        validators = {
            "etag": headers.get("etag") or record.etag,
            "last_modified": headers.get("last-modified") or record.last_modified,
        }
        self._count_visit(fetched)
        made = self._comparison.unchanged(record, fetched, self._judge.policies.counting[record.policy])
        kept = _crawled(record, fetched, kind, **validators, **checked, **made)
        return Visit(fetched, kind, kept, observed_time=_since(record, fetched.at))

    def _count_visit(self, fetched: FetchResult) -> None:
        """Count a visit for the share of extra visits if a policy learns noise."""
        if self._judge.policies.learns:
            self._comparison.learner.count_visit(fetched.fetch.site)

    def _with_links(self, visit: Visit, document: Document) -> Visit:
        """Return the visit of an unchanged page, with the page's links. The links of a duplicate are only logged."""
        if document.error is not None:
            return visit
        reading = self._pages.content(visit.fetched, document, visit.record)
        if visit.record.duplicate_of is not None:
            reading = msgspec.structs.replace(reading, links=(), unfollowed=reading.unfollowed + reading.links)
        return msgspec.structs.replace(visit, reading=reading)

    def _redirected(self, fetched: FetchResult) -> Visit:
        """Return the visit of a redirect: a link to the target, and the record of the redirecting page."""
        record = leased(fetched.fetch)
        target = urls.join(record.url, fetched.location) if fetched.location else None
        if target is None or self._is_loop(record, target):
            return self._without_copy(fetched, "failed", "redirect-loop" if target else "bad-redirect")
        if record.hops >= MAX_HOPS:
            ended = PageContent(links_seen=1, refused={"links/chain_ended": 1})
            return self._without_copy(fetched, "failed", "redirect-chain", ended)
        found = self._pages.links([target], fetched.fetch, "redirect", record)
        form = None
        if record.depth == 0 and not found[0] and self._judge.admit(urls.site_of(target), seed=fetched.fetch.site):
            form = urls.site_of(target)
            found = self._pages.links([target], fetched.fetch, "redirect", record)
        links, refused, unfollowed = found
        if record.scores:  # The target is the same page at another URL.
            links = tuple(
                link
                if self._judge.policies.rules[link.policy].table.topic is None
                else msgspec.structs.replace(link, scores=record.scores)
                for link in links
            )
        reading = PageContent(links=links, links_seen=1, refused=refused, unfollowed=unfollowed)
        error = next((f"target {reason.removeprefix('judge/')}" for reason in refused), None)
        return msgspec.structs.replace(self._without_copy(fetched, "redirected", error, reading, target), form=form)

    @staticmethod
    def _is_loop(record: PageRecord, target: str) -> bool:
        """Return whether a page redirects to itself, or back to the page that redirected to it.

        A redirect back from a page with a copy is no loop: the site has reversed an earlier redirect.
        """
        back = urls.fingerprint(target)
        if urls.site_of(target) != urls.site_of(record.url):
            back += urls.site_of(target).encode()
        return target == record.url or (record.depth == 0 and record.digest is None and record.source == back)

    def _without_copy(
        self,
        fetched: FetchResult,
        kind: OutcomeKind,
        error: str | None,
        reading: PageContent = NOTHING,
        target: str | None = None,
    ) -> Visit:
        """Return the visit of a page that is gone, failed or redirected. If the page has an old copy, the copy is kept.
        Each failure in a row makes the wait until the next visit longer.
        """
        record = switched(self._judge, leased(fetched.fetch), PageFacts(fetched.status), at=fetched.at)
        failures = record.failures + 1
        state: State = "redirected" if kind == "redirected" else "gone" if kind == "gone" else "failed"
        if kind == "failed" and record.state in ("crawled", "gone", "redirected"):
            state = record.state  # It was fetched successfully before, and one failure does not change this.
        settled = msgspec.structs.replace(
            record,
            state=state,
            verdict=kind,
            status=fetched.status,
            error=error,
            failures=failures,
            due=fetched.at + page_backoff(failures, period=self._period),
            last_crawled=record.last_crawled if kind == "failed" else fetched.at,
            target=target,
            hint="login" if fetched.status == 401 else None if target is None else hint_of_redirect(target),
        )
        return Visit(fetched, kind, settled, reading, target=target)

    def _document(
        self, fetched: FetchResult, record: PageRecord, rules: CountingRules, read: Callable[..., _Read]
    ) -> _Read:
        """Return the content of a page, as returned by the reader's method `read`."""
        kind, header = content_type(fetched.headers), _headers_of(fetched).get("x-robots-tag")
        anchors = self._judge.policies.follows_topics[record.policy]
        source = LinkSource(fetched.fetch.url, header, anchors, self._logs_links)
        return read(fetched.body, kind, source, rules.reading)


def digest_of(body: bytes) -> str:
    """Return the SHA-1 of a decoded body in hexadecimal. The digest identifies a body, but does not protect against
    forgery.
    """
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def _headers_of(fetched: FetchResult) -> dict[str, str]:
    """Return the first value of each header of an answer."""
    return dict(reversed(fetched.headers))


def _is_conditional(fetch: Fetch) -> bool:
    """Return whether the request was conditional, so that a 304 answer means that our copy is current."""
    return fetch.etag is not None or fetch.last_modified is not None


def _since(record: PageRecord, at: float) -> float:
    """Return the seconds since the page was last crawled successfully."""
    return at - (record.last_crawled if record.last_crawled is not None else at)


def _checked(record: PageRecord, at: float, *, changed: bool) -> dict[str, Any]:
    """Return the fields of a record that change with each check, such as the history."""
    return {
        "history": change_rate.append(record.history, _since(record, at), changed),
        "checks": record.checks + 1,
        "changes": record.changes + changed,
        "last_changed": at if changed else record.last_changed,
    }


def _crawled(record: PageRecord, fetched: FetchResult, kind: OutcomeKind, **changes: Any) -> PageRecord:
    """Return the record of a page that was fetched successfully."""
    return msgspec.structs.replace(
        record,
        state="crawled",
        verdict=kind,
        status=fetched.status,
        error=None,
        failures=0,
        last_crawled=fetched.at,
        target=None,
        **{"due": None, **changes},
    )
