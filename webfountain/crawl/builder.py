"""Build a crawl's frontier from a collection file, or from the settings of a Scrapy project."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import random
import socket
import time
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webfountain.clock import SystemClock
from webfountain.config import DEFAULT_STORE
from webfountain.crawl.requests import ignores_robots
from webfountain.crawl.worker_thread import POLL_S
from webfountain.errors import RepositoryHeld
from webfountain.frontier.assembly import FrontierAssembly
from webfountain.frontier.inbox.inboxes import FOLDER, FeedInbox, Inbox
from webfountain.frontier.inbox.seeds import SeedReport, load_seeds, load_seeds_once
from webfountain.frontier.server_clock import ServerClock
from webfountain.policy.collection import Collection
from webfountain.policy.collection_file import read_collection
from webfountain.policy.tables import CollectionTable, NetworkTable, PolicyFile
from webfountain.repository.repository import Repository, folder_of_ant
from webfountain.sandbox.crash_guard import CrashSuspects
from webfountain.store.locations import folder_of, without_password
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy.settings import BaseSettings

    from webfountain.clock import Clock
    from webfountain.config import FountainConfig
    from webfountain.crawl.project_pace import ProjectPace
    from webfountain.duplicates.index import DuplicateIndex
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.inbox.notes import Notes
    from webfountain.metrics import Metrics
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["FrontierSetup", "build_for_project", "build_own", "redis_parameters", "redis_url", "store_url"]

logger = logging.getLogger(__name__)
_NOT_OURS: Final = frozenset({"redis_cls", "encoding", "decode_responses", "retry_on_timeout", "url"})
"""Keys of REDIS_PARAMS that webfountain ignores, because only scrapy-redis's own client understands them."""


class FrontierSetup(NamedTuple):
    """A frontier ready to run.

    `folder` is the folder of the store; None for a store on a server or in memory. `seeds` loads the seeds of a
    collection, in the worker thread. `endless` is True if known URLs are requested again, so that the crawl does not
    end by itself.
    """

    frontier: Frontier
    collection: Collection
    clock: Clock | ServerClock
    folder: Path | None
    seeds: Any
    endless: bool

    def compare_clock(self) -> None:
        """If the store is on a server, measure how far this machine's clock differs from the server's clock."""
        if isinstance(self.clock, ServerClock):
            self.clock.compare()


def store_url(config: FountainConfig, settings: BaseSettings, spider: str, arguments: Mapping[str, str]) -> str:
    """Return the URL of the store in which a spider's requests are kept.

    WEBFOUNTAIN_STORE, if set, is the URL of the store. If the project has settings of scrapy-redis, the store is on the
    same Redis server. By default, each spider and each set of spider arguments has its own local folder. Spider
    arguments that begin with an underscore, such as scrapyd's `_job`, do not change the store's folder.
    """
    if config.store != DEFAULT_STORE:
        return config.store
    if (server := redis_url(settings, spider)) is not None:
        return server
    reported = sorted((name, value) for name, value in arguments.items() if not name.startswith("_"))
    if not reported:
        return f"{DEFAULT_STORE}/{spider}"
    return f"{DEFAULT_STORE}/{spider}-{hashlib.sha1(repr(reported).encode(), usedforsecurity=False).hexdigest()[:8]}"


def redis_url(settings: BaseSettings, spider: str) -> str | None:
    """Return the URL of a spider's store on the Redis server of a scrapy-redis project, or None if no setting names a
    server.
    """
    url: str | None = settings.get("REDIS_URL")
    if not url and (settings.get("REDIS_HOST") or settings.get("REDIS_PORT")):
        host, port = settings.get("REDIS_HOST") or "localhost", settings.get("REDIS_PORT") or 6379
        url = f"redis://{host}:{port}/{settings.get('REDIS_DB') or 0}"
    if not url:
        return None
    return url if "?" in url else f"{url}?prefix=webfountain.{spider}"


def redis_parameters(settings: BaseSettings) -> Mapping[str, Any]:
    """Return the parameters of REDIS_PARAMS for a connection, such as passwords and timeouts."""
    return {name: value for name, value in settings.getdict("REDIS_PARAMS").items() if name not in _NOT_OURS}


def build_own(config: FountainConfig, file: str, metrics: Metrics) -> FrontierSetup:
    """Build the frontier and the repository for a crawl of a collection."""
    collection = read_collection(file)
    store, clock = _open(config.store, collection, config)
    try:
        repository, place = _repository_of(config, collection, store, clock.now())
    except BaseException:
        store.close()
        raise
    folder = folder_of(config.store)
    owner = _owner()
    assembly = FrontierAssembly(
        store, repository, collection, config, clock=clock, rng=random.Random(), metrics=metrics, owner=owner
    )
    assembly.with_features(
        inbox=_inbox(store, folder),
        suspects=CrashSuspects(folder if store.claims is None else place),
        importance=_importance(collection, config.repository_folder if folder is None else folder, owner, clock.now()),
        duplicates=_duplicate_index(store, place, config.repository_folder) if collection.duplicates.detect else None,
    )
    frontier = assembly.build()
    seeds = partial(_load_seeds, frontier, store, clock)
    return FrontierSetup(frontier, collection, clock, folder, seeds, endless=True)


def _load_seeds(frontier: Frontier, store: FrontierStore, clock: Clock | ServerClock, of: Collection) -> SeedReport:
    """Load the seeds of a collection. If there are several ants, one ant loads the seeds file, and the others wait."""
    entrance, progress, at = frontier.worker.entrance, frontier.progress, clock.now()
    judge = entrance.judge

    def discover(links: Sequence[Link], *, at: float) -> Sequence[Link]:
        found = entrance.due.discover(links, at=at)
        progress.stored = store.census.statistics()
        return found

    def rest() -> bool:
        time.sleep(POLL_S)
        return not progress.stopped

    with progress.adding_seeds():
        frontier.worker.publisher.publish_limit(progress.limit(at), at=at)
        if store.claims is None or of.seeds_file is None:
            return load_seeds(of, judge, discover, at=at)
        return load_seeds_once(of, judge, discover, store.claims, owner=frontier.owner, now=clock.now, rest=rest)


def _clock_of(store: FrontierStore, machine: Clock, config: FountainConfig) -> Clock | ServerClock:
    """Return the clock that all ants of a store share. The clock is the server's if the store is on a server, and the
    machine's if the store is local.
    """
    if store.claims is None or store.claims.time() is None:
        return machine
    clock = ServerClock(machine, partial(_time_of, store.claims), heartbeat_s=config.heartbeat_seconds)
    clock.compare()
    return clock


def _time_of(claims: Claims) -> float:
    found = claims.time()
    assert found is not None
    return found


def _inbox(store: FrontierStore, folder: Path | None) -> Notes | None:
    """Return the inbox for messages from `webfountain now` and similar commands to the running crawl."""
    feed = store.feed()
    if feed is not None:
        return FeedInbox(feed)
    return None if folder is None else Inbox(folder / FOLDER)


def _repository_of(
    config: FountainConfig, collection: Collection, store: FrontierStore, at: float
) -> tuple[Repository, Path]:
    """Return the repository, opened for writing, and its folder. If several ants crawl together, each ant writes to its
    own numbered folder.

    An ant reuses the folder of an earlier ant on this machine if no other process writes there.
    """
    root = config.repository_folder
    opened = partial(
        Repository,
        rules=collection.repository,
        rotate_bytes=config.rotate_bytes,
        software=collection.politeness.user_agent,
    )
    if store.claims is None:
        return opened(root, given_out=max(store.pages.copies(), default=0)), root
    here = f"{socket.gethostname()}:{root.resolve()}"
    for number in itertools.count(1):
        [claim] = store.claims.claim([f"repository/{number}"], owner=here, until=inf, at=at)
        if claim.owner == here:
            place = folder_of_ant(root, number)
            given_out = max(store.pages.copies(repository=number), default=0)
            with suppress(RepositoryHeld):
                return opened(place, number=number, given_out=given_out), place
    raise AssertionError("numbers are not bounded")


def _importance(collection: Collection, folder: Path, owner: str, at: float) -> LiveImportance | None:
    """Return the importance of pages, or None if the collection does not rank pages."""
    if not collection.is_ranking:
        return None
    from webfountain.ranking.link_importance import live_importance  # noqa: PLC0415  (0.2 s at start)

    return live_importance(collection, folder, writer=owner, at=at)


def _duplicate_index(store: FrontierStore, place: Path, root: Path) -> DuplicateIndex:
    """Return the index of duplicates. Each ant keeps its own index of duplicates in the folder of its copies."""
    from webfountain.duplicates.index import DuplicateIndex, sketch_key  # noqa: PLC0415  only where they are detected

    return DuplicateIndex(place / "duplicates", beside=None if place == root else root, key=sketch_key(store.board))


def build_for_project(
    config: FountainConfig,
    settings: BaseSettings,
    spider: str,
    arguments: Mapping[str, str],
    metrics: Metrics,
    *,
    pace: ProjectPace | None,
) -> FrontierSetup:
    """Build the frontier for a spider of a Scrapy project. The frontier of a Scrapy project has no repository and loads
    no seeds.
    """
    collection = _collection_of(config, settings, spider, pace)
    url = store_url(config, settings, spider, arguments)
    fresh = config.fresh or settings.getbool("SCHEDULER_FLUSH_ON_START")
    store, clock = _open(url, collection, config, fresh=fresh, parameters=redis_parameters(settings))
    _log_waiting(store, spider, url)
    assembly = FrontierAssembly(
        store, None, collection, config, clock=clock, rng=random.Random(), metrics=metrics, owner=_owner()
    )
    folder = folder_of(url)
    assembly.with_features(inbox=_inbox(store, folder))
    assembly.for_project(
        recrawl=config.recrawl,
        obey_robots=settings.getbool("ROBOTSTXT_OBEY"),
        robot=settings.get("ROBOTSTXT_USER_AGENT") or settings.get("USER_AGENT"),
        ignores_robots=ignores_robots,
        pace=None if pace is None else pace.site_pace(),
    )
    return FrontierSetup(assembly.build(), collection, clock, folder, None, endless=config.recrawl)


def _open(
    url: str,
    collection: Collection,
    config: FountainConfig,
    *,
    fresh: bool = False,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[FrontierStore, Clock | ServerClock]:
    """Open the store of a crawl; return the store and the clock to use."""
    machine, cycle = SystemClock(), collection.cycle
    store = open_store(
        url,
        collection=collection.name,
        period_s=cycle.period_s,
        fastest_s=cycle.fastest_s,
        fresh=fresh,
        at=machine.now(),
        parameters=parameters,
    )
    try:
        return store, _clock_of(store, machine, config)
    except BaseException:
        store.close()
        raise


def _log_waiting(store: FrontierStore, spider: str, url: str) -> None:
    pages = store.census.statistics().pages
    logger.info(
        "The requests of %s are in %s; still to be made: %d of %d",
        spider,
        without_password(url),
        pages["never-crawled"],
        sum(pages.values()),
    )


def _collection_of(config: FountainConfig, settings: BaseSettings, spider: str, pace: ProjectPace | None) -> Collection:
    """Return the politeness and network rules for the crawl of a Scrapy project; such a crawl reads no sitemaps."""
    if pace is None:
        assert config.collection is not None
        given = read_collection(config.collection)
        path, tables = given.path, given.tables
    else:
        path = Path("scrapy settings")
        tables = PolicyFile(
            collection=CollectionTable(name=f"{settings.get('BOT_NAME')}.{spider}", scope="any"),
            politeness=pace.table(),
            network=NetworkTable(allow_private=config.allow_private),
        )
    quiet = msgspec.structs.replace(tables.discovery, sitemaps=False)
    return Collection(path, msgspec.structs.replace(tables, discovery=quiet))


def _owner() -> str:
    """Return a unique name under which this process owns leases."""
    return f"{socket.gethostname()}-{os.getpid()}-{random.SystemRandom().getrandbits(32):08x}"
