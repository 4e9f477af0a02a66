"""Why a page is as it is, or was never taken in: seed, links, policy, rules and robots line, for one URL.

What `webfountain explain` prints. It reads the store, also beside the crawl that writes it, and asks the judge, the
schedule and robots.txt what they would say now, so that it cannot differ from what the crawl does. The path is that of
the links by which each page became known first (`PageRecord.source`). Nothing is changed here.
"""

from __future__ import annotations

import itertools
import time
from math import isinf, isnan, nan
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import numpy as np

from webfountain.core.resemblance import NEAR, Topics, is_hot, links_from_hot
from webfountain.errors import InputError, PolicyError, UrlError
from webfountain.formats.robots import RobotsRules, deciding_line
from webfountain.frontier.planning.schedule import PlanFollower
from webfountain.metrics import Metrics
from webfountain.policy.files import CollectionInForce, read_collection
from webfountain.policy.judge import Judge, Origin
from webfountain.ranking import NOFOLLOW, REDIRECT, EpochScores
from webfountain.ranking.live import words_of
from webfountain.store.contract import COLLECTION, PLAN, PRICE, recrawl_place
from webfountain.urls import canonical, fingerprint, host_of, is_private_host, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from webfountain.policy.files import Collection
    from webfountain.policy.judge import Reason
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

__all__ = ["Explained", "Explanation", "Hop", "Robots", "Rule", "collection_of", "explain"]

_KEY_BYTES: Final = len(fingerprint(""))
_SHOWN: Final = 3
"""Pages that link an unknown URL."""
_MOST_HOPS: Final = 10_000
"""`collection.limits.depth` allows no more; a path is walked no further."""


class Rule(msgspec.Struct, frozen=True):
    """A key of the policy file, as ``policies.favor.deny[1]``, and its value."""

    key: str
    value: Any


class Explained(msgspec.Struct, frozen=True):
    """What the judge says of the URL: its policy, the reason where it is refused, and the rule behind that."""

    policy: str
    reason: Reason | None
    rule: Rule | None


class Hop(msgspec.Struct, frozen=True):
    """A page on the path from the seed. `by`: seed, link, redirect, sitemap, or now (asked for by hand).

    `inherited` is the policy that its link gives it by today's rules; where `policy` is another, `because` says why.
    """

    url: str
    by: str
    depth: int
    policy: str
    trust: float
    inherited: str
    because: str | None = None


class Robots(msgspec.Struct, frozen=True):
    """What the site's robots.txt says of the URL: `line` decides, by its number; None: no rule is for it.

    `allowed` None: it was not read yet. `at` is when it was, UTC seconds.
    """

    allowed: bool | None
    line: str | None = None
    number: int | None = None
    at: float | None = None


class Explanation(msgspec.Struct, frozen=True):
    """All that is to be said of a URL. `why` says it in sentences.

    `url` is the canonical form, None where there is none. Of an unknown URL `verdicts` has one for each policy under
    which a link might bring it. `alike` are known URLs that differ in what the canonical form leaves alone.
    `next_visit` is UTC seconds, None where none is to be expected.
    """

    given: str
    url: str | None
    known: bool
    why: tuple[str, ...]
    page: dict[str, Any] | None = None
    path: tuple[Hop, ...] = ()
    verdicts: tuple[Explained, ...] = ()
    robots: Robots | None = None
    next_visit: float | None = None
    alike: tuple[str, ...] = ()


def collection_of(store: FrontierStore, given: str | None = None) -> Collection:
    """The collection of a store: that of the policy file `given`, else the one in force in the crawl.

    Raises
    ------
    PolicyError
        when the file cannot be used, or none is given and no crawl of this version has kept its own in the store.
    """
    if given is not None:
        return read_collection(given)
    kept = store.value(COLLECTION)
    if kept is None:
        raise PolicyError("--collection: the store has kept no policy file (a crawl keeps the one that is in force)")
    return CollectionInForce.decode(kept).read()


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
    """What is to be said of a URL, `at` UTC seconds; of an unknown one as the known page `linked_by` links it.

    `scores` is the folder of the crawl's rankings, `links` its link log, where they can be read.

    Raises
    ------
    InputError
        when `linked_by` is no URL, or not known.
    """
    try:
        url = canonical(given)
    except UrlError as error:
        return Explanation(given, None, known=False, why=(f"It has no canonical form: {error}.",))
    asked = _Asked(store, collection, url, at=at, linking=None if linked_by is None else _known_page(store, linked_by))
    record = store.page(asked.site, fingerprint(url))
    return asked.unknown(given, links) if record is None else asked.known(given, record, scores)


def _sources_of(links: str, url: str) -> dict[str, int]:
    from webfountain.ranking.link_log import LinkLogReader, fingerprint  # noqa: PLC0415  (pyarrow, 0.3 s)

    return LinkLogReader(links).sources_of(fingerprint(url))


def _known_page(store: FrontierStore, given: str) -> PageRecord:
    url = canonical(given)
    record = store.page(site_of(url), fingerprint(url))
    if record is None:
        raise InputError(f"--from {given!r}: the page is not known here")
    return record


class _Asked:
    """One URL under one collection."""

    def __init__(
        self, store: FrontierStore, collection: Collection, url: str, *, at: float, linking: PageRecord | None
    ) -> None:
        self._linking = linking
        self._store, self._collection = store, collection
        self._url, self.site, self._at = url, site_of(url), at
        self._judge = Judge(collection, year=time.gmtime(at).tm_year)
        self._home = store.site(self.site)

    # ------------------------------------------------------------------ known

    def known(self, given: str, record: PageRecord, scores: Path | None) -> Explanation:
        """Of a page that the store has."""
        path = self._path(record)
        origin = Origin("queued", record.depth, record.policy, record.trust)
        verdict, robots = self._verdict(origin), self._robots()
        due = self._next_visit(record) if verdict.reason is None else None
        shown = ("state", "policy", "trust", "importance", "bucket", "depth", "first_seen", "last_crawled", "error")
        return Explanation(
            given,
            self._url,
            known=True,
            why=(
                *self._in_form(given),
                *_path_words(path),
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

    def _path(self, record: PageRecord) -> tuple[Hop, ...]:
        """From the seed to the page, by the links through which each became known."""
        chain = [record, *self._parents(record)]
        chain.reverse()
        hops = [self._first_hop(chain[0])]
        for parent, child in itertools.pairwise(chain):
            by = "redirect" if child.depth == parent.depth else "link"
            origin = Origin("redirect" if by == "redirect" else "link", child.depth, parent.policy, 0.0, parent.url)
            inherited = self._judge.judge([child.url], origin)[0].policy
            hops.append(self._hop(child, by, inherited))
        return tuple(hops)

    def _parents(self, record: PageRecord) -> Iterator[PageRecord]:
        site = site_of(record.url)
        met = {(site, fingerprint(record.url))}
        while record.source and len(met) < _MOST_HOPS:
            key, site = record.source[:_KEY_BYTES], record.source[_KEY_BYTES:].decode() or site
            parent = None if (site, key) in met else self._store.page(site, key)
            if parent is None:
                return  # forgotten since
            met.add((site, key))
            yield parent
            record = parent

    def _first_hop(self, record: PageRecord) -> Hop:
        """Where a path begins."""
        named = _seed(self._collection, record.url)
        if named is not None and record.depth == 0:
            return self._hop(record, "seed", named[1])
        if record.source:
            return self._hop(record, "link", record.policy)
        by = "sitemap" if record.depth else "now"
        site = site_of(record.url)
        inherited = self._judge.sitemap(site, depth=record.depth).policy if by == "sitemap" else record.policy
        return self._hop(record, by, inherited)

    def _hop(self, record: PageRecord, by: str, inherited: str) -> Hop:
        because = None if record.policy == inherited else self._change_words(record, inherited)
        return Hop(record.url, by, record.depth, record.policy, record.trust, inherited, because)

    def _change_words(self, record: PageRecord, inherited: str) -> str:
        """Why a page is under another policy than its link gives it now."""
        rules = [n for n, rule in enumerate(self._collection.tables.switch) if rule.to == record.policy]
        if record.state != "never-crawled" and rules:
            return f"switched from {inherited!r} by {' or '.join(f'switch[{n}]' for n in rules)}"
        if self._collection.conflict != "first":
            return f"found under several policies, of which conflict.rule takes the {self._collection.conflict}"
        return "found first under another version of the policy file, or by another link"

    def _worth_words(self, record: PageRecord) -> Iterator[str]:
        worth = f"trust {record.trust:.3g}, importance {record.importance:.3g}"
        yield f"It is under the policy {record.policy!r} with {worth}."

    def _importance_words(self, record: PageRecord, folder: Path | None) -> Iterator[str]:
        """What its importance is made of, and what the last ranking has of it."""
        collection = self._collection
        if not collection.is_ranking:
            if collection.is_trusting:
                yield "Its importance is its trust, for its policy has no score and nothing is ranked."
            return
        weights = collection.weights_of(record.policy)
        parts = " + ".join(f"{weight / sum(weights.values()):.2g} {name}" for name, weight in weights.items())
        yield f"Its importance is {parts}, each relative to the mean page."
        published = None if folder is None or collection.ranking.every is None else EpochScores(folder)
        if published is not None and published.epoch:
            key = np.frombuffer(fingerprint(record.url), dtype=">u8").astype(np.uint64)
            found = {
                name: float(published.lookup(name, key, absent=nan)[0]) for name in weights if name in published.names
            }
            told = ", ".join(f"{name} {value:.3g}" for name, value in found.items() if not isnan(value))
            yield f"Ranking {published.epoch} has of it: {told or 'nothing, for it came later'}."

    def _topic_words(self, record: PageRecord) -> Iterator[str]:
        """Whether it goes before others for what it is about."""
        topic = self._judge.policy(record.policy).topic
        if topic is None:
            return
        waits = record.state == "never-crawled"
        topics = Topics()
        topics.exchange(words_of(self._store))
        scores = record.scores or ((topics.promise(topic.query, record.url, ""),) if waits else ())
        by = "its links and URL" if waits else "its text"
        hot = is_hot(scores, topic.min_similarity, waits=waits)
        similarity, far = (scores[0] if scores else 0.0), links_from_hot(scores)
        near = f", {far:.0f} links from a page on topic" if 0 < far <= NEAR else ""
        order = "It goes before others" if hot and waits else "It is on topic" if hot else "It is not on topic"
        found = f"{similarity:.2g} by {by}, where {topic.min_similarity:g} is asked for"
        yield f"{order}: its similarity to {topic.query!r} is {found}{near}."

    def _state_words(self, record: PageRecord, verdict: Explained, robots: Robots) -> Iterator[str]:
        error = f" ({record.error})" if record.error else ""
        yield f"It is {record.state}{error}, {record.depth} hops from the seed."
        if record.duplicate_of is not None:
            yield f"It repeats {record.duplicate_of}: it is fetched seldom, and its links are not followed."
        if self._home is not None and self._home.state.failures:
            yield f"Its site could not be asked {self._home.state.failures} times in a row."
        if verdict.reason is not None:
            yield f"It is not fetched any more: {_verdict_words(verdict)}."
        elif robots.allowed is False:
            yield f"It is not fetched: {_robots_words(robots)}."

    # -------------------------------------------------------------- next visit

    def _next_visit(self, record: PageRecord) -> float | None:
        """When it comes due by the plan in force, and its site may be asked; None: never."""
        soonest = self._soonest()
        if record.state == "never-crawled" or record.immediate is not None:
            return soonest
        follower = PlanFollower(self._collection, metrics=Metrics(), start=self._at)
        follower.resume(self._store.value(PLAN), self._store.value(PRICE))
        [due] = follower.schedule.due_times(self.site, [recrawl_place(record)], self._at)
        return None if isinf(due) else max(due, soonest)

    def _soonest(self) -> float:
        home = self._home
        if home is None:
            return self._at
        rests = [home.state.next_at] if home.owner is not None else [home.state.next_at, home.due]
        return max(self._at, *(each for each in rests if not isinf(each)))

    def _visit_words(self, record: PageRecord, due: float | None) -> Iterator[str]:
        if due is None:
            yield "No visit is to be expected."
            return
        when = "now" if due <= self._at else f"in {_span(due - self._at)}"
        if record.immediate is not None:
            yield f"It is on the immediate queue: its next visit is as soon as its site may be asked ({when})."
        elif record.state == "never-crawled":
            home = self._home
            many = 0 if home is None else home.pages[0]
            yield f"It waits to be fetched first, one of {many:,} of its site, which may be asked {when}."
        elif record.due is not None:
            yield f"Its next visit is {when}: it has a time of its own, after {record.failures} failures in a row."
        else:
            yield f"Its next visit is {when} at the latest, by its bucket {record.bucket} and the plan."

    # ---------------------------------------------------------------- unknown

    def unknown(self, given: str, links: str | None) -> Explanation:
        """Of a URL that the store does not have; by the pages that link it, if the link log has any."""
        verdicts, named = self._verdicts(), _seed(self._collection, self._url)
        robots = self._robots()
        alike = tuple(self._alike())
        why = [*self._in_form(given)]
        if named is not None:
            seed = self._verdict(Origin("seed", 0, named[1]))
            end = "that no crawl has taken in yet, or it was forgotten" if seed.reason is None else "that is refused"
            why.append(f"It is a seed ({named[0]}) {end}{'' if seed.reason is None else ': ' + _verdict_words(seed)}.")
        elif self._linking is not None:
            why.append(self._link_words(self._linking, verdicts[0]))
        elif linked := {} if links is None else _sources_of(links, self._url):
            why += itertools.islice(self._linked_words(linked), _SHOWN)
            if len(linked) > _SHOWN:
                why.append(f"So do {len(linked) - _SHOWN} more pages.")
        elif all(verdict.reason is not None for verdict in verdicts):
            why.append(f"It was never taken in: {_verdict_words(verdicts[0])}.")
        else:
            open_to = ", ".join(repr(each.policy) for each in verdicts if each.reason is None)
            why.append(
                f"Nothing keeps it out (under {open_to}): no page that was fetched links it, or it was forgotten."
            )
            if self._home is None:
                why.append(f"Of its site, {self.site}, no page is known.")
        if not self._collection.network.allow_private and is_private_host(host_of(self.site)):
            why.append("It would not be fetched: its address is private (network.allow_private = False).")
        if robots.allowed is False:
            why.append(f"It would not be fetched: {_robots_words(robots)}.")
        why += [f"{url} is known, and is another page." for url in alike]
        return Explanation(given, self._url, known=False, why=tuple(why), verdicts=verdicts, robots=robots, alike=alike)

    def _verdicts(self) -> tuple[Explained, ...]:
        """What each policy in use would say of a link to it, the standard one first."""
        if self._linking is not None:
            page = self._linking
            return (self._verdict(Origin("link", page.depth + 1, page.policy, page.trust, page.url)),)
        standard = self._collection.tables.collection.policy
        names = dict.fromkeys([standard, *(policy for _, policy in self._collection.named_seeds()), *self._reached()])
        if _seed(self._collection, self._url) is not None:
            return tuple(self._verdict(Origin("seed", 0, name)) for name in names)
        return tuple(self._verdict(Origin("link", 1, name)) for name in names)

    def _linked_words(self, linked: Mapping[str, int]) -> Iterator[str]:
        """What became of the links to it that were met."""
        for url, flag in sorted(linked.items()):
            page = self._store.page(site_of(url), fingerprint(url))
            if flag & NOFOLLOW:
                yield f"{url} links it, and wants nobody to follow that link (nofollow)."
            elif page is None:
                yield f"{url} links it, which is not known any more."
            elif page.duplicate_of is not None:
                yield f"{url} links it, whose links are not followed, for it repeats {page.duplicate_of}."
            else:
                is_redirect = bool(flag & REDIRECT)
                depth = page.depth + (not is_redirect)
                kind: Literal["link", "redirect"] = "redirect" if is_redirect else "link"
                verdict = self._verdict(Origin(kind, depth, page.policy, page.trust, page.url))
                end = "it was forgotten, or is taken in when that page changes" if verdict.reason is None else ""
                yield f"{url} links it, under {verdict.policy!r}: {end or 'refused, ' + _verdict_words(verdict)}."

    def _link_words(self, page: PageRecord, verdict: Explained) -> str:
        """What comes of a link on a known page, which is asked for by name."""
        under = f"as linked by {page.url}, under {verdict.policy!r} and {page.depth + 1} hops from the seed,"
        if verdict.reason is not None:
            return f"It is not taken in {under} for {_verdict_words(verdict)}."
        if page.last_crawled is None:
            return f"It would be taken in {under} but that page was not fetched yet."
        return (
            f"It would be taken in {under} so that page did not link it when it was fetched last, or it was forgotten."
        )

    def _reached(self) -> Iterator[str]:
        tables = self._collection.tables
        yield from (table.otherwise for table in tables.policies.values())
        yield from (rule.to for rule in tables.switch)

    def _alike(self) -> Iterator[str]:
        """Known URLs that many sites answer alike: with or without the last slash, www., the other scheme."""
        scheme, rest = self._url.split("://", 1)
        host, path = rest.split("/", 1)
        paths = [path[:-1] if path.endswith("/") else path + "/"] if path and "?" not in path else []
        hosts = [host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]
        other = "http" if scheme == "https" else "https"
        for url in (
            *(f"{scheme}://{host}/{each}" for each in paths),
            *(f"{scheme}://{each}/{path}" for each in hosts),
            f"{other}://{host}/{path}",
        ):
            if self._store.page(site_of(url), fingerprint(url)) is not None:
                yield url

    # ------------------------------------------------------------------- both

    def _in_form(self, given: str) -> Iterator[str]:
        if given != self._url:
            yield f"Its canonical form is {self._url}."

    def _verdict(self, origin: Origin) -> Explained:
        [found] = self._judge.judge([self._url], origin)
        return Explained(found.policy, found.reason, _rule(self._collection, self._url, found.policy, found.reason))

    def _robots(self) -> Robots:
        """What the store's newest robots.txt of the site says."""
        home = self._home
        if home is None or home.state.robots_at is None:
            return Robots(None)
        state = home.state
        if not state.robots_ok:
            return Robots(False, at=state.robots_at)
        body, token = state.robots or b"", self._collection.politeness.robots_token
        allowed = RobotsRules.parse(body, token).allowed(self._url)
        line = deciding_line(body, token, self._url)
        return Robots(allowed, None if line is None else line.text, line and line.number, state.robots_at)


def _seed(collection: Collection, url: str) -> tuple[str, str] | None:
    """Where a canonical URL is named as a seed, and its policy; None: nowhere."""
    inline = len(collection.tables.collection.seeds)
    for number, (seed, policy) in enumerate(collection.seeds_with_policies()):
        if seed == url:
            place = f"collection.seeds[{number}]" if number < inline else str(collection.seeds_file)
            return place, policy
    return None


def _rule(collection: Collection, url: str, policy: str, reason: Reason | None) -> Rule | None:
    """The key behind a verdict; None: no key lets the URL in, none keeps it out."""
    discovery, table = collection.discovery, collection.policies[policy]
    if reason is None:
        return _pattern(f"policies.{policy}.allow", table.allow, url)
    if reason == "denied":
        return _pattern(f"policies.{policy}.deny", table.deny, url)
    key, value = {
        "not_allowed": (f"policies.{policy}.allow", [pattern.pattern for pattern in table.allow]),
        "not_followed": (f"policies.{policy}.follow", table.follow),
        "out_of_scope": ("collection.scope", collection.scope),
        "too_deep": ("collection.limits.depth", collection.depth),
        "too_long": ("discovery.max_url_length", discovery.max_url_length),
        "trap_repeated": ("discovery.max_repeated_segments", discovery.max_repeated_segments),
        "trap_calendar": ("discovery.calendar_years", discovery.calendar_years),
    }[reason]
    return Rule(key, value)


def _pattern(key: str, patterns: Any, url: str) -> Rule | None:
    """The first of some patterns that is found in a URL."""
    found = (Rule(f"{key}[{n}]", pattern.pattern) for n, pattern in enumerate(patterns) if pattern.search(url))
    return next(found, None)


def _verdict_words(verdict: Explained) -> str:
    words = {
        "denied": "a pattern denies it",
        "not_allowed": "no pattern allows it",
        "not_followed": "links under its policy are not followed",
        "out_of_scope": "its site is out of scope",
        "too_deep": "it is too many hops from a seed",
        "too_long": "it is too long",
        "trap_repeated": "it repeats a segment, as endless pages do",
        "trap_calendar": "it leads out of a calendar",
    }
    rule = verdict.rule
    assert verdict.reason is not None
    return f"{words[verdict.reason]}" + ("" if rule is None else f" ({rule.key} = {rule.value!r})")


def _robots_words(robots: Robots) -> str:
    if robots.line is None:
        return "robots.txt could not be read, and until it can be nothing of the site is asked"
    return f"robots.txt refuses it (line {robots.number}: {robots.line})"


def _path_words(path: tuple[Hop, ...]) -> Iterator[str]:
    first = path[0]
    begin = {
        "seed": "is a seed",
        "sitemap": "was named by a sitemap",
        "now": "was asked for by hand, or was a seed once",
        "link": "was linked by a page that is not known any more",
    }
    yield f"{first.url} {begin[first.by]}."
    for hop in path[1:]:
        yield f"{'It redirects to' if hop.by == 'redirect' else 'It links'} {hop.url}."
        if hop.because is not None:
            yield f"That is under {hop.policy!r}: {hop.because}."


def _span(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
