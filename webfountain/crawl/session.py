"""What the parts of one crawl share, built once for its crawler: configuration, counts, and the open frontier.

Scheduler, middlewares, extension and spider are built by Scrapy, each with the crawler and nothing else;
`Session.of` gives all of them the same session. The scheduler opens it in the worker thread before the crawl begins.
A project without a collection file gets one made of its own settings, so that switching over needs nothing but the
add-on:

- USER_AGENT, DOWNLOAD_TIMEOUT as they are; ROBOTSTXT_OBEY as it is, but the ant asks for robots.txt, whose groups
  are looked up by ROBOTSTXT_USER_AGENT, else by the whole USER_AGENT, as Scrapy does;
- `min_delay` is the project's DOWNLOAD_DELAY (Scrapy's default is none), `delay_factor` 10: a slow server is asked
  less often; one request at once per site and address;
- the store is `.webfountain/SPIDER` below the working folder, unless WEBFOUNTAIN_STORE names one; a spider that is
  given arguments has one for each set of them, `.webfountain/SPIDER-HASH` (`store_url`);
- private addresses are allowed (WEBFOUNTAIN_ALLOW_PRIVATE): its spiders name the hosts they mean.

The loop that carries batches of work between the frontier and its one worker thread. Place in the walk: beside it.
Store, repository and seeds are only touched in that thread, in order; the loop thread takes in what came of it. A
failure of store or disk ends the loop and is told once: what was not settled comes back at the next start.

Start URLs that others push to a list in Redis, as scrapy-redis has them, and its settings. For a spider with a
`redis_key` (scrapy-redis's RedisSpider and RedisCrawlSpider, or any other that has the attribute) entries are taken
while the crawl runs, not when it is idle, made into requests by the spider's own `make_request_from_data` where it has
one, and put first in the queues of their sites. An entry is done when its requests are in the store: a worker that
dies between leaves it to another.

Settings read: REDIS_URL, or REDIS_HOST, REDIS_PORT and REDIS_DB; REDIS_PARAMS; REDIS_ENCODING; REDIS_START_URLS_KEY,
REDIS_START_URLS_AS_SET, REDIS_START_URLS_AS_ZSET; MAX_IDLE_TIME_BEFORE_CLOSE, after which an idle spider
closes [0: never].
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import os
import random
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from scrapy import FormRequest, Request, signals
from scrapy.exceptions import DontCloseSpider

from webfountain.clock import SystemClock
from webfountain.config import FountainConfig
from webfountain.crawl import engine
from webfountain.crawl.requests import ignores_robots
from webfountain.download import terms_of
from webfountain.download.budget import BodyBudget
from webfountain.errors import InputError, RepositoryHeld, WebfountainError
from webfountain.frontier.frontier import Frontier
from webfountain.frontier.inbox import FOLDER, FeedInbox, Inbox, Notes, SeedsLoaded, load_seeds, load_seeds_once
from webfountain.metrics import Metrics
from webfountain.policy import (
    CollectionTable,
    Duration,
    NetworkTable,
    PolicyFile,
    PolitenessTable,
    PositiveDuration,
)
from webfountain.policy.files import Collection, read_collection
from webfountain.repository import Repository, folder_of_ant
from webfountain.sandbox import Suspects
from webfountain.store import DEFAULT_STORE, folder_of, open_store, without_password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from webfountain.clock import Clock
    from webfountain.download import Terms
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.planning.plan import Plan
    from webfountain.ranking.duplicate_index import DuplicateIndex
    from webfountain.ranking.live import LiveImportance
    from webfountain.store.contract import Feed, FeedEntry, FeedForm, Feeds, FrontierStore

__all__ = ["Built", "Session", "StartUrls", "Worker", "redis_parameters", "redis_url", "store_url"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

BATCH_S: Final = 0.02
"""Rest between two batches: at full speed each then has some tens of pages, not one."""
POLL_S: Final = 0.25
MOMENT_S: Final = 0.01


class Worker:
    """Runs `first` once, then the frontier's batches, as `take` gives them, until `end`.

    In the loop thread `look` is called before each batch and at least every `POLL_S`, `absorbed` after each, and
    `failed` when the loop ended by an error.
    """

    def __init__(
        self, *, look: Callable[[], None], absorbed: Callable[[], None], failed: Callable[[WebfountainError], None]
    ) -> None:
        self._look = look
        self._absorbed = absorbed
        self._failed = failed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="webfountain-worker")
        self._stirred = asyncio.Event()
        self._ending = False
        self._heart = ThreadPoolExecutor(1, thread_name_prefix="webfountain-heartbeat")
        self._task: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._planner: asyncio.Task[None] | None = None

    async def call(self, function: Callable[[], _T]) -> _T:
        """Run `function` in the worker thread, after what it does now."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def start(self, frontier: Frontier, first: Callable[[], None], take: Callable[[], Batch | None]) -> None:
        """Begin; returns at once."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(frontier, first, take))
        if frontier.beat_at() is not None:
            self._beating = loop.create_task(self._guarded(self._beat(frontier)))

    def stir(self) -> None:
        """There may be work."""
        self._stirred.set()

    async def end(self) -> None:
        """Do what is left to do, then stop."""
        self._ending = True
        self.stir()
        if self._task is not None:
            await self._task
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            await asyncio.get_running_loop().run_in_executor(self._heart, int)  # the last beat is not under way

    def shut(self) -> None:
        """Let the threads go."""
        self._thread.shutdown(wait=False)
        self._heart.shutdown(wait=False)

    async def _run(self, frontier: Frontier, first: Callable[[], None], take: Callable[[], Batch | None]) -> None:
        await self._guarded(self._run_all(frontier, first, take))

    async def _run_all(self, frontier: Frontier, first: Callable[[], None], take: Callable[[], Batch | None]) -> None:
        await self.call(first)
        await self._run_batches(frontier, take)

    async def _beat(self, frontier: Frontier) -> None:
        """Tell the other ants that this one lives, beside the worker thread: no long batch may cost it its leases."""
        loop = asyncio.get_running_loop()
        while True:
            if (beat := frontier.beat()) is not None:
                frontier.heard(await loop.run_in_executor(self._heart, beat))
                self._absorbed()
                self.stir()
            due = frontier.beat_at()
            assert due is not None
            await asyncio.sleep(min(max(due - frontier.now(), MOMENT_S), POLL_S))

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        """Whatever ends it by an error ends the crawl."""
        try:
            await work
        except WebfountainError as error:
            logger.critical("%s", error)
            self._failed(error)
        except Exception as error:
            logger.exception("The worker broke; the crawl ends, leases come back at the next start")
            self._failed(WebfountainError(f"the worker broke: {error!r}"))

    async def _run_batches(self, frontier: Frontier, take: Callable[[], Batch | None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._ending:
                self._look()
            work = take()
            if work is not None:
                frontier.absorb(await loop.run_in_executor(self._thread, frontier.run, work))
                self._absorbed()
                self._plan(frontier)
                if not self._ending:
                    await asyncio.sleep(BATCH_S)
            elif self._ending:
                return
            else:
                await self._rest()

    def _plan(self, frontier: Frontier) -> None:
        """Let a plan be made beside the crawl: it takes up to some seconds, and touches neither store nor loop."""
        planning = frontier.planning()
        if planning is not None:
            self._planner = asyncio.get_running_loop().create_task(self._adopt(frontier, planning))

    async def _adopt(self, frontier: Frontier, planning: Callable[[], Plan | None]) -> None:
        try:
            plan = await asyncio.to_thread(planning)
        except Exception:
            logger.exception("Planning failed; the last plan stays")
            plan = None
        frontier.adopt(plan)
        self.stir()

    async def _rest(self) -> None:
        """Wait until something lands, or a little while."""
        handle = asyncio.get_running_loop().call_later(POLL_S, self._stirred.set)
        await self._stirred.wait()
        handle.cancel()
        self._stirred.clear()


_SESSIONS: Final[WeakKeyDictionary[Crawler, Session]] = WeakKeyDictionary()


class Built(NamedTuple):
    """A frontier ready to run. `seeds` loads the seeds of a collection, in the worker thread.

    `endless`: known URLs are asked again, so the crawl is not over when each was asked once.
    """

    frontier: Frontier
    collection: Collection
    clock: Clock
    metrics: Metrics
    seeds: Any
    endless: bool


class Session:
    """One crawl's. Raises InputError for a WEBFOUNTAIN setting that is unknown or out of range."""

    def __init__(self, crawler: Crawler) -> None:
        self._settings = crawler.settings
        self.config = FountainConfig.from_mapping(crawler.settings)
        self.metrics = Metrics()
        self.arguments = engine.spider_arguments(crawler)
        """What the spider was given with -a, or by `process.crawl`."""
        self.inspecting = engine.is_inspecting()
        """Whether a command only looks (`scrapy shell`, `fetch`, `parse`): such a one must not touch a frontier."""
        self.built: Built | None = None
        self.bodies = BodyBudget()
        """For our own fetches. What a project asks for is not counted: its callbacks may wait for each other."""
        self.terms: Terms | None = None
        """How the crawl asks; None until it is open."""
        self.started: float | None = None
        """Monotonic seconds when the first request went out."""
        self.started_cpu: float | None = None
        """CPU seconds of the process by then."""
        self.error: WebfountainError | None = None
        """What ended the crawl, if that was no regular end."""
        self.census: Callable[[], Awaitable[float | None]] | None = None
        """The freshness estimate, once the scheduler can give it."""

    @classmethod
    def of(cls, crawler: Crawler) -> Session:
        """The session of a crawler, made when it is asked for first."""
        session = _SESSIONS.get(crawler)
        if session is None:
            session = _SESSIONS[crawler] = cls(crawler)
        return session

    @property
    def frontier(self) -> Frontier:
        """The open frontier."""
        assert self.built is not None
        return self.built.frontier

    def now(self) -> float:
        """The frontier's clock, UTC seconds."""
        assert self.built is not None
        return self.built.clock.now()

    def open(self, spider: Spider) -> Built:
        """Open store and repository; in the worker thread.

        Raises
        ------
        WebfountainError
            when the collection file, the store or the repository cannot be used.
        """
        if not getattr(spider, "is_fountain", False):
            self.built = _build_for_project(self.config, self._settings, spider.name, self.arguments, self.metrics)
        elif self.config.collection is None:
            raise InputError("the fountain spider needs a collection: -a collection=FILE")
        else:
            self.built = _build_own(self.config, self.config.collection, self.metrics)
        collection = self.built.collection
        frontier = self.built.frontier
        self.terms = terms_of(collection.politeness, collection.network, frontier.detour, may_send=frontier.may_send)
        return self.built


def store_url(config: FountainConfig, settings: BaseSettings, spider: str, arguments: Mapping[str, str]) -> str:
    """Where the frontier of another project's spider lives.

    Requests name methods of their spider, and a spider with other arguments is another crawl: each has a store of its
    own, unless the setting names one for all. Arguments that begin with an underscore do not count (scrapyd's _job).
    A project that has scrapy-redis's settings has its frontier on that server.
    """
    if config.store != DEFAULT_STORE:
        return config.store
    if (server := redis_url(settings, spider)) is not None:
        return server
    told = sorted((name, value) for name, value in arguments.items() if not name.startswith("_"))
    if not told:
        return f"{DEFAULT_STORE}/{spider}"
    return f"{DEFAULT_STORE}/{spider}-{hashlib.sha1(repr(told).encode(), usedforsecurity=False).hexdigest()[:8]}"


def _build_own(config: FountainConfig, file: str, metrics: Metrics) -> Built:
    """For the fountain spider: everything from the collection file, with a repository."""
    collection = read_collection(file)
    cycle = collection.cycle
    clock = SystemClock()
    store = open_store(
        config.store,
        collection=collection.name,
        period_s=cycle.period_s,
        fastest_s=cycle.fastest_s,
        at=clock.now(),
    )
    try:
        repository, place = _repository_of(config, collection, store, clock.now())
    except BaseException:
        store.close()
        raise
    folder = folder_of(config.store)
    owner = _owner()
    frontier = Frontier(
        store=store,
        repository=repository,
        collection=collection,
        config=config,
        clock=clock,
        rng=random.Random(),
        metrics=metrics,
        owner=owner,
        inbox=_inbox(store, folder),
        suspects=Suspects(folder if store.claims is None else place),
        importance=_importance(collection, config.repository_folder if folder is None else folder, owner, clock.now()),
        duplicates=_duplicate_index(place, config.repository_folder) if collection.duplicates.detect else None,
    )

    def seeds(of: Collection) -> SeedsLoaded:
        judge, discover = frontier.judge, frontier.due.discover
        if store.claims is None or of.seeds_file is None:
            return load_seeds(of, judge, discover, at=clock.now())

        def rest() -> bool:
            time.sleep(POLL_S)
            return not frontier.is_stopping

        return load_seeds_once(of, judge, discover, store.claims, owner=owner, now=clock.now, rest=rest)

    return Built(frontier, collection, clock, metrics, seeds, endless=True)


def _inbox(store: FrontierStore, folder: Path | None) -> Notes | None:
    """Where notes to the crawl lie: in a list on the store's server, or in its folder."""
    feed = store.feed()
    if feed is not None:
        return FeedInbox(feed)
    return None if folder is None else Inbox(folder / FOLDER)


def _repository_of(
    config: FountainConfig, collection: Collection, store: FrontierStore, at: float
) -> tuple[Repository, Path]:
    """The folder of copies, opened for writing, and where it is: of several ants each has one of its own.

    An ant takes up what an earlier one of this machine left, if nobody writes there; else it gets a new number.
    """
    root = config.repository_folder
    opened = partial(
        Repository,
        keep=collection.repository.keep,
        max_bytes=collection.repository.max_bytes,
        keep_answers=collection.repository.keep_answers,
        rotate_bytes=config.rotate_bytes,
        software=collection.politeness.user_agent,
    )
    if store.claims is None:
        return opened(root, given_out=max(store.copies(), default=0)), root
    here = f"{socket.gethostname()}:{root.resolve()}"
    for number in itertools.count(1):
        [claim] = store.claims.claim([f"repository/{number}"], owner=here, until=inf, at=at)
        if claim.owner == here:
            place = folder_of_ant(root, number)
            given_out = max(store.copies(repository=number), default=0)
            with suppress(RepositoryHeld):
                return opened(place, number=number, given_out=given_out), place
    raise AssertionError("numbers do not end")


def _importance(collection: Collection, folder: Path, owner: str, at: float) -> LiveImportance | None:
    """What pages are worth, where the collection asks for that."""
    if not collection.is_ranking:
        return None
    from webfountain.ranking.live import live_importance  # noqa: PLC0415  (0.2 s at start)

    return live_importance(collection, folder, writer=owner, at=at)


def _duplicate_index(place: Path, root: Path) -> DuplicateIndex:
    """The index of duplicates, beside the copies that it tells of; other ants have theirs likewise."""
    from webfountain.ranking.duplicate_index import DuplicateIndex  # noqa: PLC0415  only where they are detected

    return DuplicateIndex(place / "duplicates", beside=None if place == root else root)


def _build_for_project(
    config: FountainConfig, settings: BaseSettings, spider: str, arguments: Mapping[str, str], metrics: Metrics
) -> Built:
    """For another project's spider: no seeds, no repository, its own requests only, in a store of its own."""
    collection = _collection_of(config, settings, spider)
    url = store_url(config, settings, spider, arguments)
    cycle, clock = collection.cycle, SystemClock()
    store = open_store(
        url,
        collection=collection.name,
        period_s=cycle.period_s,
        fastest_s=cycle.fastest_s,
        fresh=config.fresh or settings.getbool("SCHEDULER_FLUSH_ON_START"),
        at=clock.now(),
        parameters=redis_parameters(settings),
    )
    waiting = store.statistics().pages["never-crawled"]
    known = sum(store.statistics().pages.values())
    logger.info(
        "The requests of %s wait in %s: %d of %d known ones are to be made",
        spider,
        without_password(url),
        waiting,
        known,
    )
    frontier = Frontier(
        store=store,
        repository=None,
        collection=collection,
        config=config,
        clock=clock,
        rng=random.Random(),
        metrics=metrics,
        owner=_owner(),
        recrawl=config.recrawl,
        obey_robots=settings.getbool("ROBOTSTXT_OBEY"),
        robot=settings.get("ROBOTSTXT_USER_AGENT") or settings.get("USER_AGENT"),
        ignores_robots=ignores_robots,
    )
    return Built(frontier, collection, clock, metrics, None, endless=config.recrawl)


def _collection_of(config: FountainConfig, settings: BaseSettings, spider: str) -> Collection:
    """The rules of a project's crawl. Sitemaps are not read: only what its spiders yield enters the frontier."""
    given = None if config.collection is None else read_collection(config.collection)
    path = Path("scrapy settings") if given is None else given.path
    tables = _tables_of(config, settings, spider) if given is None else given.tables
    quiet = msgspec.structs.replace(tables.discovery, sitemaps=False)
    return Collection(path, msgspec.structs.replace(tables, discovery=quiet))


def _tables_of(config: FountainConfig, settings: BaseSettings, spider: str) -> PolicyFile:
    delay = settings.getfloat("DOWNLOAD_DELAY")
    politeness = PolitenessTable(
        user_agent=settings.get("USER_AGENT"),
        min_delay=Duration(delay),
        max_delay=Duration(max(300.0, delay)),
        timeout=PositiveDuration(settings.getfloat("DOWNLOAD_TIMEOUT")),
    )
    return PolicyFile(
        collection=CollectionTable(name=f"{settings.get('BOT_NAME')}.{spider}", scope="any"),
        politeness=politeness,
        network=NetworkTable(allow_private=config.allow_private),
    )


def _owner() -> str:
    """Who holds a lease: a name that no other running process has."""
    return f"{socket.gethostname()}-{os.getpid()}-{random.SystemRandom().getrandbits(32):08x}"


TAKEN_S: Final = 60.0
"""An entry that was taken and not done in this time is another worker's."""
SHORTEST_S: Final = 0.2
LONGEST_S: Final = 2.0
"""Between two looks at the list: the longer it was empty, the longer."""
_NOT_OURS: Final = frozenset({"redis_cls", "encoding", "decode_responses", "retry_on_timeout", "url"})
"""Of REDIS_PARAMS, what is told of scrapy-redis's own client."""


def redis_url(settings: BaseSettings, spider: str) -> str | None:
    """Where a scrapy-redis project's server is, as the URL of this spider's store; None where no setting names one."""
    url: str | None = settings.get("REDIS_URL")
    if not url and (settings.get("REDIS_HOST") or settings.get("REDIS_PORT")):
        host, port = settings.get("REDIS_HOST") or "localhost", settings.get("REDIS_PORT") or 6379
        url = f"redis://{host}:{port}/{settings.get('REDIS_DB') or 0}"
    if not url:
        return None
    return url if "?" in url else f"{url}?prefix=webfountain.{spider}"


def redis_parameters(settings: BaseSettings) -> Mapping[str, Any]:
    """REDIS_PARAMS, as far as they are of the connection."""
    return {name: value for name, value in settings.getdict("REDIS_PARAMS").items() if name not in _NOT_OURS}


class StartUrls:
    """One spider's list. Used in the loop thread, but for `take` and `done`."""

    def __init__(self, feed: Feed, spider: Spider, settings: BaseSettings) -> None:
        self._feed = feed
        self._spider = spider
        self._encoding: str = getattr(spider, "redis_encoding", None) or settings.get("REDIS_ENCODING") or "utf-8"
        self._most = int(getattr(spider, "redis_batch_size", None) or settings.getint("CONCURRENT_REQUESTS"))
        idle = getattr(spider, "max_idle_time", None)
        self._idle_most = int(settings.getint("MAX_IDLE_TIME_BEFORE_CLOSE") if idle is None else idle)
        self._last = time.monotonic()
        self._wait_s = SHORTEST_S

    @classmethod
    def of(cls, crawler: Crawler, spider: Spider, store: Feeds) -> StartUrls | None:
        """The list of a spider that has one, on the server of its store; None for others. Keeps the spider open."""
        settings = crawler.settings
        key = getattr(spider, "redis_key", None)
        if key is None and settings.get("REDIS_START_URLS_KEY") is None:
            return None
        name = str(key or settings.get("REDIS_START_URLS_KEY")) % {"name": spider.name}
        form: FeedForm = "list"
        if settings.getbool("REDIS_START_URLS_AS_SET"):
            form = "set"
        elif settings.getbool("REDIS_START_URLS_AS_ZSET"):
            form = "zset"
        feed = store.feed(name, form)
        if feed is None:
            logger.warning(
                "%s has a redis_key, but its store is on no server: nothing is read from %s", spider.name, name
            )
            return None
        if hasattr(spider, "fetch_data"):
            spider.fetch_data = _nothing  # scrapy-redis's own reader, which loses what it has popped when it dies
        found = cls(feed, spider, settings)
        crawler.signals.connect(found._idle, signals.spider_idle, weak=False)
        logger.info("Start URLs of %s come from the %s %r of the store's server", spider.name, form, name)
        return found

    @property
    def wait_s(self) -> float:
        """How long to wait before the next look."""
        return self._wait_s

    def take(self, at: float) -> list[FeedEntry]:
        """The next entries. One round trip."""
        found = self._feed.take(self._most, until=at + TAKEN_S, at=at)
        self._wait_s = SHORTEST_S if found else min(1.5 * self._wait_s, LONGEST_S)
        return found

    def done(self, taken: list[FeedEntry]) -> None:
        """Their requests are in the store. One round trip."""
        self._feed.done(taken)

    def requests(self, data: bytes) -> list[Request]:
        """The requests of an entry; none, with a line in the log, for one that is none."""
        self._last = time.monotonic()
        make = getattr(self._spider, "make_request_from_data", self._request_of)
        try:
            made = make(data)
        except Exception as error:  # whatever somebody has pushed
            logger.error("What was pushed to the start URLs of %s is none (%r): %.200r", self._spider.name, error, data)
            return []
        found = [made] if isinstance(made, Request) else list(made or []) if isinstance(made, Iterable) else []
        return [each for each in found if isinstance(each, Request)]

    def _request_of(self, data: bytes) -> Request:
        """As scrapy-redis reads it: a URL, or JSON with url, meta, method, and the fields of a form."""
        text = data.decode(self._encoding)
        if not text.lstrip().startswith("{"):
            return Request(text.strip(), dont_filter=True)
        told = json.loads(text)
        url, method, meta = told.pop("url"), told.pop("method", "GET").upper(), told.pop("meta", {})
        return FormRequest(url, dont_filter=True, method=method, formdata=told, meta=meta)

    def _idle(self) -> None:
        """More may come."""
        if not self._idle_most or time.monotonic() - self._last < self._idle_most:
            raise DontCloseSpider


def _nothing(*_: Any) -> list[bytes]:
    return []
