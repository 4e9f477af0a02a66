"""The importance of a page: a sum of scores, each divided by its mean and weighted as the page's policy says."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.importance import METRICS, location
from webfountain.core.topics import is_hot, with_hot_first
from webfountain.records import PageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.core.arrays import Array
    from webfountain.core.topics import Topics
    from webfountain.policy.collection import Collection
    from webfountain.policy.tables import TopicTable
    from webfountain.records import Link


__all__ = ["PolicyWeights"]

_MEMORY: Final = 1000.0
"""Approximate number of values that the running mean of a score covers."""
_POLICY: Final = attrgetter("policy")


class PolicyWeights:
    """The weights of a collection's policies, and running means of scores."""

    def __init__(self, collection: Collection, topics: Topics) -> None:
        self._words = topics
        self._means: dict[str, float] = {}
        self.adopt(collection)

    def adopt(self, collection: Collection) -> None:
        """Use the weights and topics of an edited policy file. Any thread may call this method."""
        self._collection = collection
        self._weights: dict[str, dict[str, float]] = {}
        self._topics = {name: table.topic for name, table in collection.policies.items() if table.topic is not None}

    @property
    def have_topics(self) -> bool:
        return bool(self._topics)

    def trusted_seeds(self) -> dict[str, float]:
        """Return each seed with its trust, or an empty dictionary if no policy uses trust."""
        collection = self._collection
        if collection.limits.pages is None and not any(
            "trust" in collection.weights_of(policy) for policy in collection.policies
        ):
            return {}
        return dict(collection.trust_of_seeds())

    def wanted(self, pages: Sequence[Link | PageRecord]) -> set[str]:
        """Return the names of the scores that the policies of some pages use."""
        return {metric for name in set(map(_POLICY, pages)) for metric in self._weights_of(name)}

    def combine(self, pages: Sequence[Link | PageRecord], scores: Mapping[str, Array]) -> Array:
        """Return the (n,) importances of pages, each computed with the weights of the page's policy.

        Parameters
        ----------
        scores : (n,) scores for each of the metrics "pagerank", "backlinks" and "trust" that is `wanted`, from the last
            ranking and relative to the mean; negative if the ranking does not know the score. The other metrics are
            computed from the pages themselves
        """
        wanted, known = self.wanted(pages), dict(scores)
        if "trust" in wanted:
            trust = np.array([page.trust for page in pages])
            inherited = self._relative("trust", trust)
            known["trust"] = np.where(known["trust"] < 0, inherited, known["trust"])
            # The ranking knows the links to a distrusted page, but not the links from it.
            known["trust"] = np.where(trust > 0, known["trust"], 0.0)
        if "location" in wanted:
            known["location"] = self._relative("location", location([page.url for page in pages]))
        if "topic" in wanted:
            known["topic"] = self._relative("topic", self._on_topic(pages))
        policies = list(map(_POLICY, pages))
        names = set(policies)
        made = np.zeros(len(pages))
        for name in names:
            at = slice(None) if len(names) == 1 else np.array([policy == name for policy in policies])
            for metric, weight in self._weights_of(name).items():
                made[at] += weight * known[metric][at]
        return made

    def with_hot_first(self, pages: Sequence[Link | PageRecord], importances: Array) -> Array:
        """Return the (n,) importances, raised for pages on topic so that these pages come first."""
        if not self._topics:
            return importances
        hot, topical = np.zeros((2, len(pages)), dtype=np.bool_)
        for number, page in enumerate(pages):
            topic = self._topic_of(page.policy)
            if topic is not None:
                topical[number] = True
                hot[number] = is_hot(self._scores_of(page, topic), topic.min_similarity, waits=_waits(page))
        return np.where(topical, with_hot_first(importances, hot), importances)

    def _weights_of(self, policy: str) -> dict[str, float]:
        weights = self._weights
        if policy not in weights:
            given = self._collection.weights_of(policy)
            total = sum(given.values())
            weights[policy] = {name: given[name] / total for name in METRICS if given.get(name)}
        return weights[policy]

    def _on_topic(self, pages: Sequence[Link | PageRecord]) -> Array:
        """Return how similar (n,) pages are to the topics of their policies."""
        found = np.zeros(len(pages))
        for number, page in enumerate(pages):
            topic = self._topic_of(page.policy)
            if topic is not None:
                similarity = next(iter(self._scores_of(page, topic)), 0.0)
                found[number] = similarity if similarity >= topic.min_similarity else 0.0
        return found

    def _topic_of(self, policy: str) -> TopicTable | None:
        return self._topics.get(policy if policy in self._collection.policies else "default")

    def _scores_of(self, page: Link | PageRecord, topic: TopicTable) -> Sequence[float]:
        """Return the topic scores of a page. If a waiting page has no topic scores yet, estimate them from the words of
        its URL."""
        if page.scores or not _waits(page):
            return page.scores
        return (self._words.promise(topic.query, page.url, ""),)

    def _relative(self, name: str, values: Array) -> Array:
        """Return the values of a score, divided by the running mean of the score."""
        share = min(1.0, len(values) / _MEMORY)
        mean = self._means.get(name)
        mean = float(values.mean()) if mean is None else mean + share * (float(values.mean()) - mean)
        self._means[name] = mean
        return np.asarray(values / mean) if mean > 0 else np.ones(len(values))


def _waits(page: Link | PageRecord) -> bool:
    """Return whether a page was never fetched."""
    return not isinstance(page, PageRecord) or page.state == "never-crawled"
