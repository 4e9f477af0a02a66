"""Explain one URL for `webfountain explain`: why a page is in its state, or why it was never accepted.

The explanation uses the same rules as the crawl: the policies, the schedule and robots.txt. The path to a known page is
the chain of links by which the crawl first found the page (`PageRecord.source`). For an unknown URL, the explanation
says what each policy would decide about a link to the URL.
"""

from __future__ import annotations

import itertools
from math import inf, isclose, isinf, isnan, nan
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import numpy as np

from webfountain.core.buckets import interval_of
from webfountain.core.noise import decode
from webfountain.core.topics import NEAR, Topics, is_hot, links_from_hot
from webfountain.errors import InputError, PolicyError, UrlError
from webfountain.frontier.inbox.blocks import BlockedUrls, blocks_of
from webfountain.frontier.planning.plan_follower import PlanFollower
from webfountain.metrics import Metrics
from webfountain.policy.collection_file import read_collection
from webfountain.policy.judge import Origin
from webfountain.policy.rules import spell_rule
from webfountain.public_addresses import is_private_host
from webfountain.ranking.link_journal import NOFOLLOW, REDIRECT
from webfountain.ranking.scores import EpochScores
from webfountain.ranking.topic_words import words_of
from webfountain.report.plurals import counted, spell_span
from webfountain.report.seed_path import PagePaths, path_words, seed_place
from webfountain.report.store_reading import page_at, policy_in_force
from webfountain.report.troubles import site_error
from webfountain.report.url_facts import (
    Explanation,
    Robots,
    UrlFacts,
    UrlVerdict,
    robots_refusal_words,
    verdict_words,
)
from webfountain.store.contract import PLAN, PRICE
from webfountain.store.lanes import recrawl_place
from webfountain.urls import canonical, fingerprint, host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["KnownPage", "UnknownUrl", "block_words", "collection_of", "explain", "refusal_of"]

_SHOWN: Final = 3
"""Maximum number of linking pages that an explanation names."""


def collection_of(store: FrontierStore, given: str | None = None) -> Collection:
    """Parse the policy file `given`, or by default the policy file that the crawl of the store uses.

    Raises
    ------
    PolicyError
        if the file cannot be used, or if none is given and the store contains none.
    """
    if given is not None:
        return read_collection(given)
    kept = policy_in_force(store)
    if kept is None:
        raise PolicyError(
            "--collection: the store has no policy file (a crawl stores the file that is in force; the requests of a "
            "Scrapy project have none, `webfountain pages` shows them)"
        )
    return kept.read()


def explain(
    store: FrontierStore,
    collection: Collection,
    given: str,
    *,
    at: float,
    linked_by: str | None = None,
    scores: Path | None = None,
    links: str | None = None,
) -> Explanation:
    """Return the explanation of a URL at the time `at`, UTC seconds.

    An unknown URL is explained as if the known page `linked_by` had a link to it.

    Parameters
    ----------
    scores : folder of the crawl's rankings, if it can be read
    links : link log of the crawl, if it can be read

    Raises
    ------
    InputError
        if `linked_by` is malformed or unknown.
    """
    try:
        url = canonical(given)
    except UrlError as error:
        return Explanation(given, None, known=False, why=(f"It has no canonical form: {error}.",))
    facts = UrlFacts(store, collection, url, at=at)
    linking = None if linked_by is None else _known_page(store, linked_by)
    record = page_at(store, url)
    if record is None:
        found = UnknownUrl(facts, linking).explain(given, links)
    else:
        found = KnownPage(facts, record).explain(given, scores)
    blocked = block_words(store, url, at=at)
    return found if blocked is None else msgspec.structs.replace(found, why=(f"I{blocked[1:]}.", *found.why))


def refusal_of(store: FrontierStore, collection: Collection | None, url: str, *, at: float) -> str | None:
    """Return why a crawl would refuse a user's request to fetch a canonical URL: a block, or a rule of the policy file.
    Return None if the crawl would fetch the URL."""
    blocked = block_words(store, url, at=at)
    if blocked is not None or collection is None:
        return blocked
    known = page_at(store, url)
    policy = "default" if known is None else known.policy  # as a note `now` does
    verdict = UrlFacts(store, collection, url, at=at).verdict(Origin("queued", 0, policy))
    return None if verdict.reason is None else verdict_words(verdict)


def block_words(store: FrontierStore, url: str, *, at: float) -> str | None:
    """Return a clause such as "it is blocked for 3 hours", or None if the canonical URL is not blocked."""
    until = BlockedUrls(blocks_of(store.board)).until(url, at)
    if until is None:
        return None
    end = "" if until == inf else f" for {spell_span(until - at)}"
    return f"it is blocked{end} (`webfountain unblock` removes the block)"


def _known_page(store: FrontierStore, given: str) -> PageRecord:
    url = canonical(given)
    record = page_at(store, url)
    if record is None:
        raise InputError(f"--from {given!r}: the page is not known here")
    return record


def _noise_words(record: PageRecord) -> Iterator[str]:
    """Yield a sentence about the lines of a page that do not count as changes, because they differ at every visit."""
    samples = [repr(each.sample) for each in decode(record.noise) if each.sample]
    if samples:
        more = f" and {len(samples) - _SHOWN} more" if len(samples) > _SHOWN else ""
        verb = "does not count as a change, because it differs"
        if len(samples) > 1:
            verb = "do not count as a change, because they differ"
        yield (
            f"{counted(len(samples), 'line')} {verb} at every visit: "
            f"{', '.join(samples[:_SHOWN])}{more}. `change.always` in the policy file makes an element count."
        )


class KnownPage:
    """Explains the state of a page that is in the store."""

    def __init__(self, facts: UrlFacts, record: PageRecord) -> None:
        self._facts, self._record = facts, record

    def explain(self, given: str, scores: Path | None) -> Explanation:
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
                *_noise_words(record),
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
        """Yield sentences about the page's importance and its scores in the last ranking."""
        collection = self._facts.collection
        if not collection.is_ranking:
            if collection.is_trusting and isclose(record.importance, record.trust, rel_tol=1e-6):
                yield "Its importance is its trust, because its policy has no score and no ranking is made."
            elif collection.is_trusting:
                yield "Its importance is the trust that it had when it was put into the queue."
            return
        weights = collection.weights_of(record.policy)
        parts = " + ".join(f"{weight / sum(weights.values()):.2g} {name}" for name, weight in weights.items())
        made_of = f"its {next(iter(weights))}" if len(weights) == 1 else f"{parts}, each"
        yield f"Its importance is {made_of} divided by the mean of all pages."
        if record.state == "never-crawled" and collection.is_blending and "pagerank" in weights:
            yield "While it waits, its pagerank stands for a blend of breadth-first, backlink and PageRank order."
        published = None if folder is None or collection.ranking.every is None else EpochScores(folder)
        if published is not None and published.epoch:
            key = np.frombuffer(fingerprint(record.url), dtype=">u8").astype(np.uint64)
            found = {
                name: float(published.lookup(name, key, absent=nan)[0]) for name in weights if name in published.names
            }
            reported = ", ".join(f"{name} {value:.3g}" for name, value in found.items() if not isnan(value))
            yield f"Ranking {published.epoch} gives it {reported or 'no score, because it is newer'}."

    def _topic_words(self, record: PageRecord) -> Iterator[str]:
        """Yield a sentence that says whether the page is on topic, if its policy has a topic."""
        topic = self._facts.judge.policies.rules[record.policy].table.topic
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
        """Yield a sentence about the redirect target of the page, with the reason if the target is refused."""
        target = record.target
        if record.state != "redirected" or target is None:
            return
        origin = Origin("redirect", record.depth, record.policy, record.trust, record.url)
        if page_at(self._facts.store, target) is not None:
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
            yield f"It is no longer fetched: {verdict_words(verdict)}."
        elif robots.allowed is False:
            yield f"It is not fetched: {robots_refusal_words(robots)}."

    def _next_visit(self, record: PageRecord) -> float | None:
        """Return the earliest time of the next fetch, or None if no fetch is planned."""
        soonest = self._soonest()
        if record.state == "never-crawled" or record.immediate is not None:
            return soonest
        follower = PlanFollower(self._facts.collection, metrics=Metrics(), start=self._facts.at)
        follower.resume(self._facts.store.board.value(PLAN), self._facts.store.board.value(PRICE))
        due = follower.schedule.due(*recrawl_place(record))
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
            known = "It changes about" if record.checks else "Until a second visit it counts as changing"
            yield f"Next visit: {when} at the latest. {known} every {interval} (bucket {record.bucket})."


class UnknownUrl:
    """Explains how the crawl would treat a URL that the store does not have. `linking` is a known page that is assumed
    to link to the URL, or None."""

    def __init__(self, facts: UrlFacts, linking: PageRecord | None) -> None:
        self._facts, self._linking = facts, linking

    def explain(self, given: str, links: str | None) -> Explanation:
        """Return the explanation of a URL that the store does not have. `links` is the link log, in which links to the
        URL are looked up."""
        facts = self._facts
        verdicts, named = self._verdicts(), seed_place(facts.collection, facts.url)
        robots = facts.robots()
        alike = tuple(self._alike())
        why = [*facts.form_words(given)]
        if (rule := facts.collection.rules.find(facts.url)) is not None:
            spelled = spell_rule(facts.collection.tables.rule[rule.place])
            why.append(f"rule[{rule.place}] applies to it, whatever page links to it ({spelled}).")
        if named is not None:
            seed = facts.verdict(Origin("seed", 0, named[1]))
            end = "that no crawl has loaded yet, or it was forgotten" if seed.reason is None else "that is refused"
            why.append(f"It is a seed ({named[0]}) {end}{'' if seed.reason is None else ': ' + verdict_words(seed)}.")
        elif self._linking is not None:
            why.append(self._link_words(self._linking, verdicts[0]))
        elif linked := {} if links is None else _sources_of(links, facts.url):
            why += itertools.islice(self._linked_words(linked), _SHOWN)
            if len(linked) > _SHOWN:
                more = len(linked) - _SHOWN
                why.append(f"{counted(more, 'more page')} {'links' if more == 1 else 'link'} to it.")
        elif all(verdict.reason is not None for verdict in verdicts):
            why.append(f"It is not known here: {verdict_words(verdicts[0])}.")
        else:
            why += self._open_words(verdicts)
            if facts.home is None:
                why.append(f"No page of its site {facts.site} is known.")
        if not facts.collection.network.allow_private and is_private_host(host_of(facts.site)):
            why.append("It would not be fetched: its address is private (network.allow_private = False).")
        if robots.allowed is False:
            why.append(f"It would not be fetched: {robots_refusal_words(robots)}.")
        why += [f"{url} is known, but is a different page." for url in alike]
        return Explanation(given, facts.url, known=False, why=tuple(why), verdicts=verdicts, robots=robots, alike=alike)

    def _open_words(self, verdicts: Iterable[UrlVerdict]) -> Iterator[str]:
        """Yield sentences about an unknown URL that at least one policy would accept."""
        open_to = ", ".join(repr(each.policy) for each in verdicts if each.reason is None)
        hops = counted(self._facts.collection.limits.depth, "hop")
        yield (
            f"No rule refuses it under {open_to}: no fetched page of these policies, less than {hops} from a seed, "
            "links to it, or it was forgotten."
        )
        for each in verdicts:
            if each.reason is not None:
                yield f"A link under {each.policy!r} is refused: {verdict_words(each)}."

    def _verdicts(self) -> tuple[UrlVerdict, ...]:
        """Return what each policy decides about a link to the URL, the default policy first."""
        facts = self._facts
        if self._linking is not None:
            page = self._linking
            return (facts.verdict(Origin("link", page.depth + 1, page.policy, page.trust, page.url)),)
        standard = facts.collection.tables.collection.policy
        names = dict.fromkeys([standard, *(policy for _, policy in facts.collection.named_seeds()), *self._reached()])
        if seed_place(facts.collection, facts.url) is not None:
            return tuple(facts.verdict(Origin("seed", 0, name)) for name in names)
        return tuple(facts.verdict(Origin("link", 1, name)) for name in names)

    def _linked_words(self, linked: Mapping[str, int]) -> Iterator[str]:
        """Yield sentences about the links to the URL in the link log."""
        for url, flag in sorted(linked.items()):
            page = page_at(self._facts.store, url)
            if flag & NOFOLLOW:
                yield f"{url} links to it with nofollow."
            elif page is None:
                yield f"{url} links to it, but is no longer known."
            elif page.duplicate_of is not None:
                yield f"{url} links to it, but repeats {page.duplicate_of}, so its links are not followed."
            else:
                is_redirect = bool(flag & REDIRECT)
                depth = page.depth + (not is_redirect)
                kind: Literal["link", "redirect"] = "redirect" if is_redirect else "link"
                verdict = self._facts.verdict(Origin(kind, depth, page.policy, page.trust, page.url))
                end = "it was forgotten, or it will be added when that page changes" if verdict.reason is None else ""
                yield f"{url} links to it, under {verdict.policy!r}: {end or 'refused, ' + verdict_words(verdict)}."

    def _link_words(self, page: PageRecord, verdict: UrlVerdict) -> str:
        """Return a sentence about how the crawl would treat a link from `page` to the URL."""
        hops = counted(page.depth + 1, "hop")
        under = f"As a link of {page.url}, under {verdict.policy!r} and {hops} from the seed, it"
        if verdict.reason is not None:
            return f"{under} is refused: {verdict_words(verdict)}."
        if page.last_crawled is None:
            return f"{under} would be added, but that page was not fetched yet."
        return f"{under} would be added. So that page did not link to it at its last fetch, or it was forgotten."

    def _reached(self) -> Iterator[str]:
        tables = self._facts.collection.tables
        yield from (table.otherwise for table in tables.policies.values())
        yield from (rule.policy for rule in tables.rule if rule.policy is not None)
        yield from (rule.to for rule in tables.switch)

    def _alike(self) -> Iterator[str]:
        """Return known URLs that differ from the URL only in the last slash, in ``www.`` or in the scheme."""
        scheme, rest = self._facts.url.split("://", 1)
        host, path = rest.split("/", 1)
        paths = [path[:-1] if path.endswith("/") else path + "/"] if path and "?" not in path else []
        hosts = [host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]
        other = "http" if scheme == "https" else "https"
        for url in (
            *(f"{scheme}://{host}/{each}" for each in paths),
            *(f"{scheme}://{each}/{path}" for each in hosts),
            f"{other}://{host}/{path}",
        ):
            if page_at(self._facts.store, url) is not None:
                yield url


def _sources_of(links: str, url: str) -> dict[str, int]:
    from webfountain.ranking.link_log import LinkLogReader, fingerprint  # noqa: PLC0415  (pyarrow, 0.3 s)

    return LinkLogReader(links).sources_of(fingerprint(url))
