"""Facts about a page that policies use: language, similarity to a topic, the share of duplicates on its site.

Place in the walk: after a body is read (`examiner`), before its policy may be switched (`policy_switch`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.core.topics import links_from_hot
from webfountain.formats.language import language_of
from webfountain.policy.switches import PageFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.core.topics import Topics
    from webfountain.formats.document import Document
    from webfountain.policy.judge import Judge
    from webfountain.records import FetchResult, PageRecord

__all__ = ["PageFactsReader"]


class PageFactsReader:
    """Computes the facts of a page. `duplicates`: share of a site's pages that repeat others."""

    def __init__(self, judge: Judge, topics: Topics, duplicates: Callable[[str], float]) -> None:
        self._judge = judge
        self._topics = topics
        self._duplicates = duplicates

    def seen(self, fetched: FetchResult, document: Document, record: PageRecord) -> PageFacts:
        """Return the facts of a page that any switch uses."""
        judge, text = self._judge, document.text
        asked = judge.asks
        if not asked:
            return PageFacts(fetched.status, text)
        language, similarity = None, None
        if "language" in asked:
            language = language_of(text, document.language or fetched.header("content-language"))
        if "similarity" in asked and text:
            topic = judge.policy(record.policy).topic
            similarity = None if topic is None else self._topics.similarity(topic.query, text)
        share = self._duplicates(fetched.fetch.site) if "duplicates" in asked else 0.0
        return PageFacts(fetched.status, text, language, similarity, share)

    def scored(self, record: PageRecord, document: Document) -> PageRecord:
        """Return the record with the scores of its text for the topic of its policy, if the policy has one."""
        topic = self._judge.policy(record.policy).topic
        if topic is None:
            return record if not record.scores else msgspec.structs.replace(record, scores=())
        similarity = self._topics.similarity(topic.query, document.text)
        if record.digest is None:
            self._topics.learn(document.text)
        far = 0.0 if similarity >= topic.min_similarity else links_from_hot(record.scores)
        return msgspec.structs.replace(record, scores=(similarity, far))
