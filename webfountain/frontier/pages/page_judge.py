"""Judge an examined page: choose its policy, and the links that the policy admits.

Facts about a page, such as its language, can switch the page to another policy. A page can be switched because of the
pages that were discovered through it (`policy_review`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from webfountain import urls
from webfountain.core.topics import NEAR, links_from_hot
from webfountain.formats.links import MAX_LINKS
from webfountain.frontier.visit import PageContent
from webfountain.policy.judge import Origin
from webfountain.policy.provenance import Provenance, arrived, rule_number
from webfountain.policy.switches import PageFacts
from webfountain.records import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webfountain.core.topics import Topics
    from webfountain.formats.document import Document
    from webfountain.policy.judge import Judge
    from webfountain.policy.tables import TopicTable
    from webfountain.records import Fetch, FetchResult, PageRecord

__all__ = [
    "PageJudge",
    "switched",
]

_BY_HAND: Final = arrived("now")


class PageJudge:
    """Judges examined pages. `duplicates` returns the share of duplicates among a site's pages. `logs` is True if the
    crawl keeps a link log, which needs the refused links.
    """

    def __init__(self, judge: Judge, topics: Topics, *, duplicates: Callable[[str], float], logs: bool) -> None:
        self._judge = judge
        self._topics = topics
        self._duplicates = duplicates
        self._logs = logs

    def judged(self, fetched: FetchResult, document: Document, record: PageRecord) -> tuple[PageRecord, PageContent]:
        """Choose the policy of an examined page. Return the page's record with its policy, and the page's content with
        judged links.
        """
        if self._judge.policies.switches or record.provenance == _BY_HAND:
            record = switched(self._judge, record, self._facts(fetched, document, record), at=fetched.at)
        record = self._scored(record, document)
        return record, self.content(fetched, document, record)

    def content(self, fetched: FetchResult, document: Document, record: PageRecord) -> PageContent:
        """Return the content of a page, with judged links."""
        links, refused, unfollowed = self.links(document.links, fetched.fetch, "link", record)
        if document.anchors:
            links = self._promising(links, dict(zip(document.links, document.anchors, strict=True)), record)
        if len(document.links) >= MAX_LINKS:
            refused["links/too_many"] = 1
        seen, nofollow = len(document.links), tuple(map(_logged, document.nofollow))
        return PageContent(
            document.title, document.text, links, seen, refused, document.canonical, nofollow, unfollowed
        )

    def links(
        self, found: Sequence[str], fetch: Fetch, kind: Literal["link", "redirect"], record: PageRecord
    ) -> tuple[tuple[Link, ...], dict[str, int], tuple[Link, ...]]:
        """Judge links. Return the accepted links, the number of refused links by reason, and the refused links for the
        link log.
        """
        depth, hops = record.depth + (kind == "link"), record.hops + 1 if kind == "redirect" else 0
        is_copied = kind == "link" and record.digest is not None
        origin = Origin(kind, depth, record.policy, record.trust, fetch.url, is_copied=is_copied)
        links, others = self._judge.links(found, origin, hops=hops)
        refused: dict[str, int] = {}
        for _, reason in others:
            refused[f"judge/{reason}"] = refused.get(f"judge/{reason}", 0) + 1
        return tuple(links), refused, tuple(_logged(url) for url, _ in others) if self._logs else ()

    def _promising(self, links: Sequence[Link], anchors: Mapping[str, str], record: PageRecord) -> tuple[Link, ...]:
        """Add the link text to each link. If a link's policy has a topic, add scores that are computed from the words
        of the link's URL and text.
        """
        far = links_from_hot(record.scores) + 1
        found = []
        for link in links:
            topic, anchor = self._topic(link.policy), anchors.get(link.url, "")
            promised = 0.0 if topic is None else self._topics.promise(topic.query, link.url, anchor)
            says = topic is not None and (promised > 0.0 or far <= NEAR)
            scores = (promised, far) if says else ()
            found.append(msgspec.structs.replace(link, scores=scores, anchor=anchor) if scores or anchor else link)
        return tuple(found)

    def _topic(self, policy: str) -> TopicTable | None:
        return self._judge.policies.rules[policy].table.topic

    def _facts(self, fetched: FetchResult, document: Document, record: PageRecord) -> PageFacts:
        """Return the facts about a page that the policy file's ``[[switch]]`` tables mention."""
        asked, text = self._judge.policies.asks, document.text
        language, similarity = None, None
        if "language" in asked:
            from webfountain.formats.language import language_of  # noqa: PLC0415  (few policies ask for it)

            language = language_of(text, document.language or fetched.header("content-language"))
        if "similarity" in asked and text:
            topic = self._topic(record.policy)
            similarity = None if topic is None else self._topics.similarity(topic.query, text)
        share = self._duplicates(fetched.fetch.site) if "duplicates" in asked else 0.0
        return PageFacts(fetched.status, text, language, similarity, share)

    def _scored(self, record: PageRecord, document: Document) -> PageRecord:
        """Return the record with scores of how well the text fits the topic of the page's policy. If the policy has no
        topic, the record gets no scores.
        """
        topic = self._topic(record.policy)
        if topic is None:
            return record if not record.scores else msgspec.structs.replace(record, scores=())
        similarity = self._topics.similarity(topic.query, document.text)
        if record.digest is None:
            self._topics.learn(document.text)
        far = 0.0 if similarity >= topic.min_similarity else links_from_hot(record.scores)
        return msgspec.structs.replace(record, scores=(similarity, far))


def _logged(url: str) -> Link:
    """Return a link that is logged but not followed."""
    return Link(url, urls.site_of(url), urls.fingerprint(url))


def switched(judge: Judge, record: PageRecord, seen: PageFacts, *, at: float) -> PageRecord:
    """Return the record of a page. If the facts `seen` meet the conditions of a ``[[switch]]``, the record has the new
    policy."""
    if record.provenance == _BY_HAND:  # It was not judged when it was requested.
        record = _ruled(judge, record)
    switch = judge.switched(record.policy, seen)
    if switch is None:
        return record
    trust = judge.trust_switched(record.policy, record.trust, to=switch.to)
    reported = Provenance.decode(record.provenance).because("switch", at=at, rule=rule_number(switch))
    worth = judge.importance_of(record, trust)
    return msgspec.structs.replace(
        record, policy=switch.to, trust=trust, importance=worth, provenance=reported.encode()
    )


def _ruled(judge: Judge, record: PageRecord) -> PageRecord:
    """Apply the policy file's ``[[rule]]`` tables to a page that `webfountain now` added, and return its record."""
    verdict = judge.inherited(record.url, Origin("seed", record.depth, record.policy, record.trust))
    if not verdict.rule:
        return record
    return msgspec.structs.replace(
        record,
        policy=verdict.policy,
        trust=verdict.trust,
        importance=judge.importance_of(record, verdict.trust),
        provenance=arrived("now", rule=verdict.rule),
    )
