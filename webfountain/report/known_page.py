"""Explain a known page: its path from the seed, policy, importance, state, and next visit.

A part of `webfountain explain`. It calls the judge, schedule and robots.txt rules of the crawl itself, so its answer
agrees with what the crawl does. The path consists of the links by which each page was first discovered
(`PageRecord.source`).
"""

from __future__ import annotations

from math import isclose, isinf, isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.buckets import interval_of
from webfountain.core.topics import NEAR, Topics, is_hot, links_from_hot
from webfountain.frontier.planning.plan_follower import PlanFollower
from webfountain.metrics import Metrics
from webfountain.policy.judge import Origin
from webfountain.ranking.scores import EpochScores
from webfountain.ranking.topic_words import words_of
from webfountain.report.explanation import Explanation, Robots, UrlVerdict
from webfountain.report.page_path import PagePaths, path_words
from webfountain.report.plurals import counted, spell_span
from webfountain.report.unreachable import site_error
from webfountain.report.verdict_words import robots_words, verdict_words
from webfountain.store.contract import PLAN, PRICE
from webfountain.store.lanes import recrawl_place
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.records import PageRecord
    from webfountain.report.url_facts import UrlFacts

__all__ = ["KnownPage"]


class KnownPage:
    """A page that the store has."""

    def __init__(self, facts: UrlFacts, record: PageRecord) -> None:
        self._facts, self._record = facts, record

    def explain(self, given: str, scores: Path | None) -> Explanation:
        """Return the explanation; `scores` is the folder of the crawl's rankings."""
        record = self._record
        path = PagePaths(self._facts.store, self._facts.collection, self._facts.judge).path(record)
        origin = Origin("queued", record.depth, record.policy, record.trust)
        verdict, robots = self._facts.verdict(origin), self._facts.robots()
        due = self._next_visit(record) if verdict.reason is None else None
        shown = ("state", "policy", "trust", "importance", "bucket", "depth", "first_seen", "last_crawled", "error")
        return Explanation(
            given,
            self._facts.url,
            known=True,
            why=(
                *self._facts.form_words(given),
                *path_words(path),
                *self._worth_words(record),
                *self._importance_words(record, scores),
                *self._topic_words(record),
                *self._state_words(record, verdict, robots),
                *self._visit_words(record, due),
            ),
            page={name: getattr(record, name) for name in shown},
            path=path,
            verdicts=(verdict,),
            robots=robots,
            next_visit=due,
        )

    def _worth_words(self, record: PageRecord) -> Iterator[str]:
        worth = f"trust {record.trust:.3g}, importance {record.importance:.3g}"
        yield f"It is under the policy {record.policy!r} with {worth}."

    def _importance_words(self, record: PageRecord, folder: Path | None) -> Iterator[str]:
        """Yield sentences about its importance and its place in the last ranking."""
        collection = self._facts.collection
        if not collection.is_ranking:
            if collection.is_trusting and isclose(record.importance, record.trust, rel_tol=1e-6):
                yield "Its importance is its trust, because its policy has no score and no ranking is made."
            elif collection.is_trusting:
                yield "Its importance is the trust that it had when it was put into the queue."
            return
        weights = collection.weights_of(record.policy)
        parts = " + ".join(f"{weight / sum(weights.values()):.2g} {name}" for name, weight in weights.items())
        yield f"Its importance is {parts}, each divided by the mean of all pages."
        published = None if folder is None or collection.ranking.every is None else EpochScores(folder)
        if published is not None and published.epoch:
            key = np.frombuffer(fingerprint(record.url), dtype=">u8").astype(np.uint64)
            found = {
                name: float(published.lookup(name, key, absent=nan)[0]) for name in weights if name in published.names
            }
            reported = ", ".join(f"{name} {value:.3g}" for name, value in found.items() if not isnan(value))
            yield f"Ranking {published.epoch} gives it {reported or 'nothing, because it is newer'}."

    def _topic_words(self, record: PageRecord) -> Iterator[str]:
        """Yield a sentence about its topic, if the topic puts it before other pages."""
        topic = self._facts.judge.policy(record.policy).topic
        if topic is None:
            return
        waits = record.state == "never-crawled"
        topics = Topics()
        topics.exchange(words_of(self._facts.store.board))
        scores = record.scores or ((topics.promise(topic.query, record.url, ""),) if waits else ())
        by = "its links and URL" if waits else "its text"
        hot = is_hot(scores, topic.min_similarity, waits=waits)
        similarity, far = (scores[0] if scores else 0.0), links_from_hot(scores)
        near = f", {counted(round(far), 'link')} from a page on topic" if 0 < far <= NEAR else ""
        order = "It goes before others" if hot and waits else "It is on topic" if hot else "It is not on topic"
        found = f"{similarity:.2g} by {by}, and {topic.min_similarity:g} is required"
        yield f"{order}: its similarity to {topic.query!r} is {found}{near}."

    def _target_words(self, record: PageRecord) -> Iterator[str]:
        """Yield a sentence about its redirect target, and about the rule that refuses the target."""
        target = record.target
        if record.state != "redirected" or target is None:
            return
        origin = Origin("redirect", record.depth, record.policy, record.trust, record.url)
        if self._facts.store.pages.get(site_of(target), fingerprint(target)) is not None:
            yield f"It redirects to {target}."
            return
        verdict = self._facts.verdict(origin, of=target)
        why = "which is not known" if verdict.reason is None else f"which is refused: {verdict_words(verdict)}"
        yield f"It redirects to {target}, {why}."

    def _state_words(self, record: PageRecord, verdict: UrlVerdict, robots: Robots) -> Iterator[str]:
        error = f" ({record.error})" if record.error else ""
        yield f"It is {record.state}{error}, {counted(record.depth, 'hop')} from the seed."
        yield from self._target_words(record)
        if (seed := self._facts.judge.forms.get(self._facts.site)) is not None:
            yield f"Its site is in scope because the seed {seed} redirects to it."
        if self._facts.home is not None and (why := site_error(self._facts.home)):
            yield f"The last request to its site failed: {why}."
        if record.duplicate_of is not None:
            yield f"It repeats {record.duplicate_of}, so it is fetched rarely and its links are not followed."
        if self._facts.home is not None and self._facts.home.state.failures:
            yield f"{counted(self._facts.home.state.failures, 'request')} to its site failed in a row."
        if verdict.reason is not None:
            yield f"It is not fetched any more: {verdict_words(verdict)}."
        elif robots.allowed is False:
            yield f"It is not fetched: {robots_words(robots)}."

    def _next_visit(self, record: PageRecord) -> float | None:
        """Return the time at which the page is due by the present plan and its site may be requested; None: never."""
        soonest = self._soonest()
        if record.state == "never-crawled" or record.immediate is not None:
            return soonest
        follower = PlanFollower(self._facts.collection, metrics=Metrics(), start=self._facts.at)
        follower.resume(self._facts.store.board.value(PLAN), self._facts.store.board.value(PRICE))
        [due] = follower.schedule.due_times(self._facts.site, [recrawl_place(record)], self._facts.at)
        return None if isinf(due) else max(due, soonest)

    def _soonest(self) -> float:
        home = self._facts.home
        if home is None:
            return self._facts.at
        rests = [home.state.next_at] if home.owner is not None else [home.state.next_at, home.due]
        return max(self._facts.at, *(each for each in rests if not isinf(each)))

    def _visit_words(self, record: PageRecord, due: float | None) -> Iterator[str]:
        if due is None:
            yield "No visit is planned."
            return
        when = "now" if due <= self._facts.at else f"in {spell_span(due - self._facts.at)}"
        if record.immediate is not None:
            yield f"Next visit: {when}. It is on the immediate queue, before all other pages."
        elif record.state == "never-crawled":
            home = self._facts.home
            many = 0 if home is None else home.pages[0]
            waiting = counted(many, "never-crawled page")
            yield f"First visit: {when} at the earliest. Its site has {waiting}."
        elif record.due is not None:
            yield f"Next visit: {when}, after {counted(record.failures, 'failure')} in a row."
        else:
            interval = spell_span(interval_of(record.bucket, self._facts.store.census.fastest_s))
            yield f"Next visit: {when} at the latest. It changes about every {interval} (bucket {record.bucket})."
