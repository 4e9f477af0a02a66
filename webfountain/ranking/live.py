"""Importance in the running crawl: what a page is worth by the last ranking, by what came since, and by its policy.

Place in the walk (DESIGN 3): a page's links are logged and credited here before they are discovered; those that are
new get the importance that names their lane, those that wait and have gained much are weighed anew (`risen`), and each
new epoch of scores is brought into a site's queues when the site is activated or its hand refilled (`importance`, by
the store's `regrade`). Whenever it is time a `Ranker` is started on the log. It decides nothing else, and the worker
thread owns it; a crawl without ``ranking.every`` and ``score`` has none.

The ranker as a process of its own beside the crawl: started with a job, never waited for, safe to kill. ``python -m
webfountain.ranking.live FILE`` reads a `Job`, compacts the link log, ranks it and publishes an epoch. It
has the lowest priority, and what it has done when it is killed is what it has published: the log stays readable, the
epoch in force stays. Two of one folder exclude each other.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import numpy as np

from webfountain.core.rank import DAMPING, METRICS, PRIOR, OnlineImportance, is_home, location, worth_of_waiting
from webfountain.core.resemblance import Topics, WordCounts, is_hot, with_hot_first
from webfountain.ranking import NOFOLLOW, REDIRECT, UNFOLLOWED, EpochScores, published_at
from webfountain.records import PageRecord
from webfountain.store.contract import WORDS
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    import numpy.typing as npt

    from webfountain.policy import TopicTable
    from webfountain.policy.files import Collection
    from webfountain.ranking.link_log import LinkLog
    from webfountain.records import Link, Linked
    from webfountain.store.contract import Board

    Array = npt.NDArray[np.float64]

__all__ = [
    "Job",
    "LiveImportance",
    "Ranker",
    "RankerProcess",
    "Rankings",
    "WaitingSites",
    "carry_out",
    "live_importance",
    "words_of",
]

logger = logging.getLogger(__name__)

_KEY: Final = attrgetter("key")
_SITE: Final = attrgetter("site")
_ROOT: Final = Path(__file__).resolve().parents[2]
_NICE: Final = 19


class Job(msgspec.Struct, frozen=True):
    """What is to be ranked: the log at `links`, for the epochs in `scores`, at the time `at`.

    `trusted` are URLs and how far each is trusted, 0 to 1. `newer_than`: an epoch of a later time is left as it is.
    """

    links: str
    scores: str
    at: float
    trusted: dict[str, float] = {}
    newer_than: float = 0.0


class Ranker(Protocol):
    """Who carries out jobs, one at a time."""

    def start(self, job: Job) -> None:
        """Begin; returns at once. None may be under way."""
        ...

    def failed(self) -> str | None:
        """What went wrong with the last job; None: nothing, or it is under way."""
        ...

    def is_busy(self) -> bool:
        """Whether a job is under way."""
        ...

    def cost_s(self) -> float:
        """CPU seconds that the last job took, or that the first will."""
        ...

    def stop(self) -> None:
        """End what is under way, unfinished."""
        ...


class RankerProcess:
    """A process for each job. It outlives nobody: it is killed when this object goes."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._cost_s = LEAST_COST_S

    def start(self, job: Job) -> None:
        file = Path(job.scores) / "job"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.msgpack.encode(job))
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        # A session of its own: the terminal's signals are for the parent.
        self._process = subprocess.Popen(  # noqa: S603  (ourselves)
            [sys.executable, "-P", "-m", "webfountain.ranking.live", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        weakref.finalize(self, _dispose, self._process)

    def is_busy(self) -> bool:
        process = self._process
        if process is None or process.returncode is not None:
            return False
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not ended:
            return True
        process.returncode = os.waitstatus_to_exitcode(status)
        self._cost_s = usage.ru_utime + usage.ru_stime
        return False

    def cost_s(self) -> float:
        return self._cost_s

    def failed(self) -> str | None:
        process = self._process
        if (
            process is None
            or self.is_busy()
            or not process.returncode
            or process.stderr is None
            or process.stderr.closed
        ):
            return None
        with process.stderr as errors:
            lines = errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with {process.returncode}"

    def stop(self) -> None:
        if self._process is not None:
            _dispose(self._process)
            self._process = None


def _dispose(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()


def carry_out(job: Job) -> int | None:
    """Compact, rank, publish; the epoch's number, None when somebody else has done it, or is about to.

    Raises RepositoryError when a file cannot be read or written.
    """
    from webfountain.ranking.link_log import compact  # noqa: PLC0415  (pyarrow and scipy, 0.6 s)
    from webfountain.ranking.ranker import publish_ranking  # noqa: PLC0415

    folder = Path(job.scores)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "LOCK").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if published_at(folder) > job.newer_than:
            return None
        compact(job.links)
        return publish_ranking(job.links, folder, trusted=job.trusted, at=job.at)


def main() -> None:
    """Carry out the job that a file has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    carry_out(msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Job))


FLUSH_S: Final = 60.0
"""The rows of so long, seconds, are what a kill forgets of the log, and of words."""
FEWEST: Final = 1000
"""Pages that are logged before the first ranking; later ones wait for as many as were ranked, or for their time."""
SHARE: Final = 0.05
"""CPU time of rankings, at most, for that of the crawl beside them; of those that `every` asks for, for one core's."""
LEAST_COST_S: Final = 0.6
"""CPU seconds of a ranking of few pages: the start of a process."""
KEPT: Final = 500_000
"""Pages of which is known what they gained since the last ranking, about 300 bytes each."""
RISE: Final = 1.5
"""A page that waits is weighed anew when its rank has grown by this factor: a class of the store's."""
PROMISE: Final = 2.0
"""What a home page is worth at least before it is known what others came to be worth, relative to a mean page."""
SAMPLE: Final = 1000
"""Home pages, fetched last, whose mean rank is what others promise."""
_NOFOLLOW, _UNFOLLOWED = bytes((NOFOLLOW,)), bytes((UNFOLLOWED,))
_MEMORY: Final = 1000.0
"""Scores that the mean of a metric is taken over, whose true mean is not known."""


def live_importance(
    collection: Collection, folder: Path, *, writer: str, at: float, ranker: Ranker | None = None
) -> LiveImportance | None:
    """What the pages of a collection are worth; None where nobody asks for more than the trust of their links.

    Parameters
    ----------
    folder : of the store, or of the repository where that has none: `links` and `scores` lie there
    writer : who writes the log, a name that no other process has
    ranker : None: a process of its own
    """
    if not collection.is_ranking:
        return None
    if collection.ranking.every is None:
        return LiveImportance(collection, at=at)
    from webfountain.ranking.link_log import LinkLog  # noqa: PLC0415  (pyarrow, for those who log links only)

    links = collection.ranking.links or str(folder / "links")
    return LiveImportance(
        collection,
        rankings=Rankings(
            links,
            folder / "scores",
            collection.ranking.every,
            LinkLog(links, writer=writer, period=collection.cycle.period_s),
            RankerProcess() if ranker is None else ranker,
        ),
        at=at,
    )


class Rankings(NamedTuple):
    """Where the log and the scores lie, how often is ranked, s, who writes the log, who ranks it."""

    links: str
    scores: Path
    every: float
    log: LinkLog
    ranker: Ranker


class WaitingSites:
    """Sites that are known to have pages due and that nobody here crawls, and which of them is worth most.

    A site is worth its PageRank among sites by the last ranking, and what sites have brought since that link to it
    for the first time. It is known of sites as they are discovered or leave; those of an earlier run, and of other
    ants, come when they are longest due.

    Source: Cho 2000, section 2.1 (sites chosen by the PageRank of the graph of sites).

    Parameters
    ----------
    scores : folder in which sites are ranked; None: there are no rankings

    Of more than `KEPT` sites, or links between sites, all are forgotten.
    """

    def __init__(self, scores: Path | None) -> None:
        self._scores = None if scores is None else EpochScores(scores)
        self._waiting: dict[str, None] = {}
        self._active: set[str] = set()
        self._gained: dict[str, float] = {}
        self._linked: dict[str, set[str]] = {}
        self._links = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def refresh(self) -> None:
        """A new ranking holds, and what was credited since the one before is in it."""
        if self._scores is not None and self._scores.refresh():
            self._gained.clear()

    def credit(self, site: str, links: Sequence[Link]) -> None:
        """A page of a site has these links: another site that it links to for the first time gains by it."""
        others = set(map(_SITE, links)) - self._linked.get(site, set()) - {site}
        if not others:
            return
        linked = self._linked.setdefault(site, set())
        linked |= others
        self._links += len(others)
        part = DAMPING * self._worth([site])[0] / len(linked)
        for other in others:
            self._gained[other] = self._gained.get(other, 0.0) + part
        if max(self._links, len(self._gained)) > KEPT:
            self._linked, self._gained, self._links = {}, {}, 0

    def joined(self, sites: Iterable[str]) -> None:
        """These are on the active list now."""
        for site in sites:
            self._active.add(site)
            self._waiting.pop(site, None)

    def left(self, sites: Iterable[str]) -> None:
        """These are not any more."""
        self._active.difference_update(sites)

    def wait(self, sites: Iterable[str]) -> None:
        """These have pages that are due."""
        self._waiting.update(dict.fromkeys(site for site in sites if site not in self._active))
        if len(self._waiting) > KEPT:
            self._waiting.clear()

    def take(self, most: int) -> list[str]:
        """The worthiest, at most so many; they are taken for active until they leave."""
        names = list(self._waiting)
        if most <= 0 or not names:
            return []
        worth = np.array(self._worth(names))
        best = [names[place] for place in np.argsort(-worth, kind="stable")[:most].tolist()]
        for site in best:
            del self._waiting[site]
        return best

    def _worth(self, sites: Sequence[str]) -> list[float]:
        gained = [self._gained.get(site, 0.0) for site in sites]
        if self._scores is None or not self._scores.epoch:
            return [PRIOR + gain for gain in gained]
        keys = np.frombuffer(b"".join(map(fingerprint, sites)), dtype=">u8").astype(np.uint64)
        return list((self._scores.lookup("pagerank", keys, absent=PRIOR) + np.array(gained)).tolist())


class RisenPages:
    """Pages that wait and are worth more than their lane says, of each site the worthiest first.

    What one is worth is what it was when it was told last. Of more than `most` pages none is remembered: they stay in
    their lanes until they gain again.
    """

    def __init__(self, *, most: int = KEPT) -> None:
        self._most = most
        self._count = 0
        self._worth: dict[str, dict[bytes, float]] = {}
        self._heaps: dict[str, list[tuple[float, bytes]]] = {}  # an entry is stale whose worth is not the page's

    def add(self, site: str, key: bytes, worth: float) -> None:
        """A page is worth so much now."""
        self._count += 1
        if self._count > self._most:
            self.clear()
        self._worth.setdefault(site, {})[key] = worth
        heappush(self._heaps.setdefault(site, []), (-worth, key))

    def drop(self, site: str, key: bytes) -> None:
        """A page waits no more."""
        self._worth.get(site, {}).pop(key, None)

    def take(self, site: str, most: int) -> list[bytes]:
        """The worthiest of a site, at most so many; they are forgotten."""
        worth, heap = self._worth.get(site, {}), self._heaps.get(site, [])
        taken: list[bytes] = []
        while heap and len(taken) < most:
            value, key = heappop(heap)
            self._count -= 1
            if worth.get(key) == -value:
                del worth[key]
                taken.append(key)
        if not heap:
            self._worth.pop(site, None)
            self._heaps.pop(site, None)
        return taken

    def clear(self) -> None:
        """Forget all."""
        self._worth, self._heaps, self._count = {}, {}, 0


class LiveImportance:
    """What pages are worth, asked and told by the worker thread.

    Parameters
    ----------
    collection : whose policies weigh the metrics
    rankings : where rankings come from; None: there are none, and what links say is what was learned online
    at : now, UTC seconds
    """

    def __init__(
        self,
        collection: Collection,
        *,
        rankings: Rankings | None = None,
        at: float,
    ) -> None:
        self.adopt(collection)
        self._rankings = rankings
        self._scores: EpochScores | None = None
        if rankings is not None:
            self._scores = EpochScores(rankings.scores)
        self.sites = WaitingSites(None if rankings is None else rankings.scores / "sites")
        """Which sites wait, and which of them is to be crawled first."""
        self._is_bounded = collection.limits.pages is not None
        self._online: OnlineImportance[bytes] = OnlineImportance(most=KEPT, by_rank=self._is_bounded)
        self.topics = Topics(threading.Lock())
        """What is learned of words; who reads pages teaches it."""
        self._share_at = -inf
        self._risen = RisenPages()
        self._means: dict[str, float] = {}
        self._homes: deque[bytes] = deque(maxlen=SAMPLE)  # fetched last
        self._promise = PROMISE
        self._known = self._seeded = 0  # pages, and those of them that began with cash of their own
        self._flush_at = at + FLUSH_S
        self._logged, self._ranked_pages = 0, 0  # since the last ranking, and before it
        self._started_at = at  # when the last ranking was begun, or we were
        self._spent_before = 0.0  # before the last ranking was begun

    @property
    def epoch(self) -> int:
        """Number of the ranking in force; 0: there is none."""
        return 0 if self._scores is None else self._scores.epoch

    def adopt(self, collection: Collection) -> None:
        """Weigh by an edited policy file from now on. Any thread may call."""
        self._collection = collection
        self._weights: dict[str, dict[str, float]] = {}
        self._topics = {name: table.topic for name, table in collection.policies.items() if table.topic is not None}

    # ------------------------------------------------------------- what is told

    def record(self, fetched: Sequence[Linked]) -> None:
        """Pages were fetched and have links: they are logged, and the pages' worth is handed on to them."""
        keys = [fingerprint(one.page.url) for one in fetched]
        scores = self._published("pagerank", keys, PRIOR).tolist()
        linked = self._published("crawled", keys, 0.0).tolist()
        for one, key, score, was_linked in zip(fetched, keys, scores, linked, strict=True):
            if self._rankings is not None:
                self._log(self._rankings.log, one)
            endowed = 0.0
            if not one.again:
                endowed = self._endow(one, key, score)
                if is_home(one.page.url):
                    self._homes.append(key)
            self.sites.credit(one.site, one.links)
            targets = list(map(_KEY, one.links))
            # How much those are worth by now is asked when their site is refilled.
            outgrown = self._online.credit(
                key, targets, score=score, linked=bool(was_linked), endowed=endowed, scale=self._scale
            )
            self._risen.drop(one.site, key)
            for place, worth in outgrown.items():
                self._risen.add(one.links[place].site, targets[place], worth)

    def _log(self, log: LinkLog, one: Linked) -> None:
        """A row with all links of a page, also those that nobody follows."""
        links, flags = one.links, b""
        if one.nofollow or one.unfollowed:
            links = [*links, *one.nofollow, *one.unfollowed]
            flags = bytes(len(one.links)) + _NOFOLLOW * len(one.nofollow) + _UNFOLLOWED * len(one.unfollowed)
        if one.redirected:
            flags = bytes(flag | REDIRECT for flag in flags or bytes(len(links)))
        anchors = [link.anchor for link in links] if self._topics else None
        log.append(
            one.page.url,
            one.site,
            at=one.at,
            links=links,
            flags=flags,
            anchors=anchors if anchors and any(anchors) else None,
        )
        self._logged += 1

    def _endow(self, one: Linked, key: bytes, score: float) -> float:
        """Cash at its first fetch of a page that got none: what one is worth that waits since another run.

        A seed is given its own.
        """
        if not one.page.depth:
            self._online.seed(key, 1.0)
            self._seeded += 1
        return score / self._scale

    @property
    def _scale(self) -> float:
        """What a page's cash is multiplied with, so that a mean page has one."""
        return max(self._known, 1) / max(self._seeded, 1)

    def weigh(self, links: Sequence[Link]) -> list[Link]:
        """The links with the importance that they have, if they are new, and the scores that it is made of."""
        if not links:
            return []
        keys = [link.key for link in links]
        made = self._with_hot_first(links, self._importances(links, keys, self._worths_of_waiting(keys, links)))
        return [
            msgspec.structs.replace(link, importance=importance)
            for link, importance in zip(links, made.tolist(), strict=True)
        ]

    def importance(self, records: Sequence[PageRecord]) -> list[float]:
        """What pages that wait are worth now."""
        keys = [fingerprint(record.url) for record in records]
        made = self._importances(records, keys, self._worths_of_waiting(keys, records))
        found: list[float] = self._with_hot_first(records, made).tolist()
        return found

    def worth_of_holding(self, records: Sequence[PageRecord]) -> list[float]:
        """What pages are worth to a collection of a fixed size, those that it holds and those that wait alike."""
        keys = [fingerprint(record.url) for record in records]
        made = self._importances(records, keys, self._ranks(keys))
        found: list[float] = self._with_hot_first(records, made).tolist()
        return found

    def weighed(self, records: Iterable[PageRecord]) -> list[PageRecord]:
        """Records of pages that were fetched, with the importance that they have now."""
        records = list(records)
        keys = [fingerprint(record.url) for record in records]
        found = self._importances(records, keys, self._ranks(keys)).tolist()
        return [msgspec.structs.replace(record, importance=value) for record, value in zip(records, found, strict=True)]

    def risen(self, site: str, most: int) -> list[bytes]:
        """Pages of a site that have gained much since they were weighed, the worthiest, at most so many; told once.

        The others wait until they are among them: a lease of so many pages takes none of those.
        """
        return self._risen.take(site, most)

    def share_words(self, board: Board, *, at: float) -> None:
        """Exchange what was learned of words with other ants and the crawls before and after this; once a minute."""
        is_first = self._share_at == -inf
        if not self._topics or at < self._share_at or not (is_first or self.topics.has_learned):
            return
        self._share_at = at + FLUSH_S
        published = words_of(board)
        made = self.topics.exchange(published)
        if made != published:
            board.put_value(WORDS, msgspec.msgpack.encode(made))

    # ----------------------------------------------------------------- rankings

    def tend(self, at: float, *, known: int) -> bool:
        """Write what was logged, start a ranking when it is time, take up a new one; whether there was one.

        `known` is how many pages the store knows.

        Raises RepositoryError when the log or the scores cannot be read or written.
        """
        self._known = known
        if self._rankings is None or self._scores is None:
            return False
        links, scores, _, log, ranker = self._rankings
        if at >= self._flush_at:
            self._flush_at = at + FLUSH_S
            log.flush()
        if not ranker.is_busy():
            if (error := ranker.failed()) is not None:
                logger.error("The ranking failed, the last one stays: %s", error)
            if self._is_time(at, self._rankings):
                log.flush()
                self._ranked_pages, self._logged = self._ranked_pages + self._logged, 0
                self._started_at, self._spent_before = at, time.process_time()
                ranker.start(Job(links, str(scores), at, self._trusted(), newer_than=self._scores.at))
        if not self._scores.refresh():
            return False
        logger.info("Ranking %d holds: %d pages", self._scores.epoch, len(self._scores))
        self._learn_promise()
        self.sites.refresh()
        self._online.rank()
        self._risen.clear()
        return True

    def _learn_promise(self) -> None:
        """What home pages came to be worth once they, and what is around them, were fetched.

        Of a home page that waits fewest of the links are known that will lead to it: those of its own site.
        """
        if self._homes:
            self._promise = float(self._published("pagerank", list(self._homes), PRIOR).mean())

    def _is_time(self, at: float, rankings: Rankings) -> bool:
        """Something was logged, and the time has come or the collection has doubled; and the crawl can afford it."""
        assert self._scores is not None
        if not self._logged:
            return False
        price = rankings.ranker.cost_s() / SHARE
        has_doubled = self._logged >= max(FEWEST, self._ranked_pages)
        if has_doubled and time.process_time() - self._spent_before >= price:
            return True
        return at >= max(self._scores.at, self._started_at) + max(rankings.every, price)

    def _trusted(self) -> dict[str, float]:
        """Seeds and how far each is trusted, where any policy asks for trust."""
        collection = self._collection
        if not any("trust" in collection.weights_of(policy) for policy in collection.policies):
            return {}
        return {url: collection.policies[policy].trust for url, policy in collection.seeds_with_policies()}

    def close(self) -> None:
        """Write what was logged; a ranking under way is given up."""
        if self._rankings is not None:
            self._rankings.ranker.stop()
            self._rankings.log.flush()

    # ------------------------------------------------------------- what it is made of

    def _importances(self, pages: Sequence[Link | PageRecord], keys: Sequence[bytes], ranks: Array) -> Array:
        """(n,) importances, each by the weights of its page's policy."""
        policies = [page.policy for page in pages]
        names = set(policies)
        weights = {name: self._weights.get(name) or self._prepare(name) for name in names}
        wanted = {metric for each in weights.values() for metric in each}
        scores = {"pagerank": ranks} | self._other_scores(wanted, keys, pages)
        if "topic" in wanted:
            scores["topic"] = self._relative("topic", self._on_topic(pages))
        made = np.zeros(len(keys))
        if len(names) == 1:
            [only] = weights.values()
            for metric, weight in only.items():
                made += weight * scores[metric]
            return made
        for name, each in weights.items():
            at = np.array([policy == name for policy in policies])
            for metric, weight in each.items():
                made[at] += weight * scores[metric][at]
        return made

    def _prepare(self, policy: str) -> dict[str, float]:
        given = self._collection.weights_of(policy)
        total = sum(given.values())
        made = self._weights[policy] = {name: given[name] / total for name in METRICS if given.get(name)}
        return made

    def _other_scores(
        self, wanted: Container[str], keys: Sequence[bytes], pages: Sequence[Link | PageRecord]
    ) -> dict[str, Array]:
        """(n,) of each metric, relative to its mean."""
        scores: dict[str, Array] = {}
        if "backlinks" in wanted:
            scores["backlinks"] = self._backlinks(keys)
        if "trust" in wanted:
            trust = np.array([page.trust for page in pages])
            inherited = self._relative("trust", trust)
            scores["trust"] = self._published("trust", keys, -1.0)
            scores["trust"] = np.where(scores["trust"] < 0, inherited, scores["trust"])
            # Of a distrusted page the ranking knows only who links it.
            scores["trust"] = np.where(trust > 0, scores["trust"], 0.0)
        if "location" in wanted:
            scores["location"] = self._relative("location", location([page.url for page in pages]))
        return scores

    def _on_topic(self, pages: Sequence[Link | PageRecord]) -> Array:
        """(n,) how similar pages are to the topics of their policies; 0 of what is not on topic."""
        found = np.zeros(len(pages))
        for number, page in enumerate(pages):
            topic = self._topic_of(page.policy)
            if topic is not None:
                similarity = next(iter(self._scores_of(page, topic)), 0.0)
                found[number] = similarity if similarity >= topic.min_similarity else 0.0
        return found

    def _with_hot_first(self, pages: Sequence[Link | PageRecord], importances: Array) -> Array:
        """(n,) the importances, where pages of a policy with a topic are that are hot before all others."""
        if not self._topics:
            return importances
        hot, topical = np.zeros((2, len(pages)), dtype=np.bool_)
        for number, page in enumerate(pages):
            topic = self._topic_of(page.policy)
            if topic is not None:
                topical[number] = True
                hot[number] = is_hot(self._scores_of(page, topic), topic.min_similarity, waits=_waits(page))
        return np.where(topical, with_hot_first(importances, hot), importances)

    def _topic_of(self, policy: str) -> TopicTable | None:
        return self._topics.get(policy if policy in self._collection.policies else "default")

    def _scores_of(self, page: Link | PageRecord, topic: TopicTable) -> Sequence[float]:
        """What is known of a page; of one that came by no link, what the words of its URL promise."""
        if page.scores or not _waits(page):
            return page.scores
        return (self.topics.promise(topic.query, page.url, ""),)

    def _ranks(self, keys: Sequence[bytes]) -> Array:
        """(n,) PageRank by the last ranking and what came since."""
        return np.asarray(self._published("pagerank", keys, PRIOR) + self._online.gains_and_cash(keys)[0])

    def _worths_of_waiting(self, keys: Sequence[bytes], pages: Sequence[Link | PageRecord]) -> Array:
        """(n,) by rank and cash, and what a home page promises; remembered, so that what rises is noticed.

        In a collection of a fixed size by rank alone: a page that took the place of a held one for what it promises,
        and has kept that once it is fetched, would go for the next, and they would take turns for ever.
        """
        ranks = self._published("pagerank", keys, PRIOR)
        gains, cash = self._online.gains_and_cash(keys)
        worths = ranks + gains if self._is_bounded else worth_of_waiting(ranks + gains, self._scale * cash)
        self._online.expect(keys, ranks, (RISE * worths) ** 2)
        if self._is_bounded:
            return worths
        return np.where([is_home(page.url) for page in pages], np.maximum(worths, self._promise), worths)

    def _backlinks(self, keys: Sequence[bytes]) -> Array:
        """(n,) backlinks by the last ranking and what came since, relative to those of a mean page."""
        ranked, pages = (0, 0) if self._scores is None else (self._scores.links, len(self._scores))
        mean = (ranked + self._online.links) / max(self._known, pages, len(self._online), 1)
        counted = self._online.backlinks(keys) + self._published("backlinks", keys, 0.0) * ranked / max(pages, 1)
        return np.asarray(counted / mean) if mean > 0 else counted

    def _published(self, name: str, keys: Sequence[bytes], absent: float) -> Array:
        scores = self._scores
        if scores is None or name not in scores.names:
            return np.full(len(keys), absent)
        fingerprints = np.frombuffer(b"".join(keys), dtype=">u8").astype(np.uint64)
        return scores.lookup(name, fingerprints, absent=absent)

    def _relative(self, name: str, values: Array) -> Array:
        """Relative to the mean of what was seen of the metric lately."""
        share = min(1.0, len(values) / _MEMORY)
        mean = self._means.get(name)
        mean = float(values.mean()) if mean is None else mean + share * (float(values.mean()) - mean)
        self._means[name] = mean
        return np.asarray(values / mean) if mean > 0 else np.ones(len(values))


def words_of(board: Board) -> WordCounts:
    """What is published of words; nothing before the first time, and where another version published it."""
    try:
        return msgspec.msgpack.decode(board.value(WORDS) or _NO_WORDS, type=WordCounts)
    except msgspec.MsgspecError:
        return WordCounts()


_NO_WORDS: Final = msgspec.msgpack.encode(WordCounts())


def _waits(page: Link | PageRecord) -> bool:
    """Whether a page was never fetched."""
    return not isinstance(page, PageRecord) or page.state == "never-crawled"


if __name__ == "__main__":
    main()
