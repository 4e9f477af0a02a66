"""From a crawler's settings to a frontier: what is opened, in which order, and what an add-on's project gets.

Called by the scheduler in the worker thread before the crawl begins. A project without a collection file gets one
made of its own settings, so that switching over needs nothing but the add-on:

- USER_AGENT, DOWNLOAD_TIMEOUT as they are; ROBOTSTXT_OBEY as it is, but the ant asks for robots.txt;
- `min_delay` is the project's DOWNLOAD_DELAY (Scrapy's default is none), `delay_factor` 10: a slow server is asked
  less often; one request at once per site and address;
- the store is `.webfountain/SPIDER` below the working folder, unless WEBFOUNTAIN_STORE names one;
- private addresses are allowed (WEBFOUNTAIN_ALLOW_PRIVATE): its spiders name the hosts they mean.
"""

from __future__ import annotations

import os
import random
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webfountain.clock import SystemClock
from webfountain.crawl.shelf import ignores_robots
from webfountain.frontier.frontier import Frontier
from webfountain.frontier.inbox import FOLDER, Inbox
from webfountain.frontier.seeds import load_seeds
from webfountain.policy.files import Collection, read_collection
from webfountain.policy.rules import Judge
from webfountain.policy.tables import CollectionTable, NetworkTable, PolicyFile, PolitenessTable
from webfountain.policy.units import Duration, PositiveDuration
from webfountain.repository.pages import Repository
from webfountain.store.opening import DEFAULT_STORE, folder_of, open_store

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from webfountain.clock import Clock
    from webfountain.config import FountainConfig
    from webfountain.frontier.seeds import SeedsLoaded
    from webfountain.metrics import Metrics

__all__ = ["ADDON_SETTING", "Built", "build_for_project", "build_own"]

ADDON_SETTING: Final = "FOUNTAIN_ADDON"
"""Where the add-on leaves what the project's settings were before it overrode them."""


class Built(NamedTuple):
    """A frontier ready to run. `seeds` loads the seeds, in the worker thread.

    `endless`: known URLs are asked again, so the crawl is not over when each was asked once.
    """

    frontier: Frontier
    collection: Collection
    clock: Clock
    metrics: Metrics
    seeds: Any
    endless: bool


def build_own(config: FountainConfig, metrics: Metrics) -> Built:
    """For the fountain spider: everything from the collection file, with a repository.

    Raises
    ------
    WebfountainError
        when the collection file, the store or the repository cannot be used.
    """
    assert config.collection is not None
    collection = read_collection(config.collection)
    cycle = collection.cycle
    store = open_store(config.store, collection=collection.name, period_s=cycle.period_s, fastest_s=cycle.fastest_s)
    try:
        repository = Repository(
            config.repository_folder,
            keep=collection.repository.keep,
            max_bytes=collection.repository.max_bytes,
            rotate_bytes=config.rotate_bytes,
            software=collection.politeness.user_agent,
        )
    except BaseException:
        store.close()
        raise
    clock = SystemClock()
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
    )

    def seeds() -> SeedsLoaded:
        at = clock.now()
        judge = Judge(collection, year=time.gmtime(at).tm_year)
        return load_seeds(collection, judge, frontier.due.discover, at=at)

    return Built(frontier, collection, clock, metrics, seeds, endless=True)


def build_for_project(config: FountainConfig, settings: BaseSettings, spider: str, metrics: Metrics) -> Built:
    """For another project's spider: no seeds, no repository, its own requests only, in a store of its own.

    Raises
    ------
    WebfountainError
        when the store, or the collection file if one is given, cannot be used.
    """
    collection = _collection_of(config, settings, spider)
    # Requests name methods of their spider: two spiders cannot share a frontier.
    url = f"{DEFAULT_STORE}/{spider}" if config.store == DEFAULT_STORE else config.store
    before = settings.getdict(ADDON_SETTING)
    clock = SystemClock()
    frontier = Frontier(
        store=open_store(
            url,
            collection=collection.name,
            period_s=collection.cycle.period_s,
            fastest_s=collection.cycle.fastest_s,
        ),
        repository=None,
        collection=collection,
        config=config,
        clock=clock,
        rng=random.Random(),
        metrics=metrics,
        owner=_owner(),
        recrawl=config.recrawl,
        obey_robots=bool(before.get("obey_robots", False)),
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
    before = settings.getdict(ADDON_SETTING)
    delay = float(before.get("delay", 0.0))
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
