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
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from webfountain.clock import SystemClock
from webfountain.config import FountainConfig
from webfountain.crawl import engine
from webfountain.crawl.requests import ignores_robots
from webfountain.download.fetcher import terms_of
from webfountain.errors import InputError
from webfountain.frontier.frontier import Frontier
from webfountain.frontier.inbox import FOLDER, Inbox
from webfountain.frontier.pages.suspects import Suspects
from webfountain.frontier.seeds import load_seeds
from webfountain.metrics import Metrics
from webfountain.policy.files import Collection, read_collection
from webfountain.policy.tables import CollectionTable, NetworkTable, PolicyFile, PolitenessTable
from webfountain.policy.units import Duration, PositiveDuration
from webfountain.repository.pages import Repository
from webfountain.store.opening import DEFAULT_STORE, folder_of, open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from webfountain.clock import Clock
    from webfountain.download.fetcher import Terms
    from webfountain.errors import WebfountainError
from webfountain.frontier.seeds import SeedsLoaded

__all__ = ["Built", "Session", "store_url"]

logger = logging.getLogger(__name__)

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
        self.terms = terms_of(collection.politeness, collection.network, self.built.frontier.detour)
        return self.built


def store_url(config: FountainConfig, spider: str, arguments: Mapping[str, str]) -> str:
    """Where the frontier of another project's spider lives.

    Requests name methods of their spider, and a spider with other arguments is another crawl: each has a store of its
    own, unless the setting names one for all. Arguments that begin with an underscore do not count (scrapyd's _job).
    """
    if config.store != DEFAULT_STORE:
        return config.store
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
        repository = Repository(
            config.repository_folder,
            keep=collection.repository.keep,
            max_bytes=collection.repository.max_bytes,
            keep_answers=collection.repository.keep_answers,
            rotate_bytes=config.rotate_bytes,
            given_out=max(store.copies(), default=0),
            software=collection.politeness.user_agent,
        )
    except BaseException:
        store.close()
        raise
    folder = folder_of(config.store)
    frontier = Frontier(
        store=store,
        repository=repository,
        collection=collection,
        config=config,
        clock=clock,
        rng=random.Random(),
        metrics=metrics,
        owner=_owner(),
        inbox=None if folder is None else Inbox(folder / FOLDER),
        suspects=Suspects(folder),
    )

    def seeds(of: Collection) -> SeedsLoaded:
        return load_seeds(of, frontier.judge, frontier.due.discover, at=clock.now())

    return Built(frontier, collection, clock, metrics, seeds, endless=True)


def _build_for_project(
    config: FountainConfig, settings: BaseSettings, spider: str, arguments: Mapping[str, str], metrics: Metrics
) -> Built:
    """For another project's spider: no seeds, no repository, its own requests only, in a store of its own."""
    collection = _collection_of(config, settings, spider)
    url = store_url(config, spider, arguments)
    cycle, clock = collection.cycle, SystemClock()
    store = open_store(
        url,
        collection=collection.name,
        period_s=cycle.period_s,
        fastest_s=cycle.fastest_s,
        fresh=config.fresh,
        at=clock.now(),
    )
    waiting = store.statistics().pages["never-crawled"]
    known = sum(store.statistics().pages.values())
    logger.info("The requests of %s wait in %s: %d of %d known ones are to be made", spider, url, waiting, known)
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
