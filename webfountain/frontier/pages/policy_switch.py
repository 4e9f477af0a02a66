"""Switch a page to another policy, because of facts about it or a request from outside.

Place in the walk: a page is switched after its body is read (`examiner`), or when the pages discovered through it are
counted (`policy_review`). The facts are the language, the similarity to a topic, and the share of duplicates on the
site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.core.topics import links_from_hot
from webfountain.policy.judge import Origin
from webfountain.policy.provenance import Provenance, arrived, rule_number
from webfountain.policy.switches import PageFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.core.topics import Topics
    from webfountain.formats.document import Document
    from webfountain.policy.judge import Judge
    from webfountain.records import FetchResult, PageRecord

__all__ = ["PageFactsReader", "switched"]

_BY_HAND: Final = arrived("now")


def switched(judge: Judge, record: PageRecord, seen: PageFacts, *, at: float) -> PageRecord:
    """Return the record under the policy that the page's facts require. Its links inherit that policy from then on."""
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


class PageFactsReader:
    """Computes the facts of a page that the conditions of switches use. `duplicates` returns the share of a site's
    pages that repeat others."""

    def __init__(self, judge: Judge, topics: Topics, duplicates: Callable[[str], float]) -> None:
        self._judge = judge
        self._topics = topics
        self._duplicates = duplicates

    def judged(self, fetched: FetchResult, document: Document, record: PageRecord) -> PageRecord:
        """Return the record of a page that was read, under the policy that its facts require, with its scores."""
        seen = self._seen(fetched, document, record)
        return self._scored(switched(self._judge, record, seen, at=fetched.at), document)

    def _seen(self, fetched: FetchResult, document: Document, record: PageRecord) -> PageFacts:
        """Return those facts of a page that some switch uses."""
        judge, text = self._judge, document.text
        asked = judge.asks
        if not asked:
            return PageFacts(fetched.status, text)
        language, similarity = None, None
        if "language" in asked:
            from webfountain.formats.language import language_of  # noqa: PLC0415  (few policies ask for it)

            language = language_of(text, document.language or fetched.header("content-language"))
        if "similarity" in asked and text:
            topic = judge.policy(record.policy).topic
            similarity = None if topic is None else self._topics.similarity(topic.query, text)
        share = self._duplicates(fetched.fetch.site) if "duplicates" in asked else 0.0
        return PageFacts(fetched.status, text, language, similarity, share)

    def _scored(self, record: PageRecord, document: Document) -> PageRecord:
        """Return the record with the scores of its text for the topic of its policy, if the policy has one."""
        topic = self._judge.policy(record.policy).topic
        if topic is None:
            return record if not record.scores else msgspec.structs.replace(record, scores=())
        similarity = self._topics.similarity(topic.query, document.text)
        if record.digest is None:
            self._topics.learn(document.text)
        far = 0.0 if similarity >= topic.min_similarity else links_from_hot(record.scores)
        return msgspec.structs.replace(record, scores=(similarity, far))


def _ruled(judge: Judge, record: PageRecord) -> PageRecord:
    """Return the record of a page that `now` requested, under the ``[[rule]]`` that matches it."""
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
