"""Measure what the shared store costs: server and client CPU of each step, then pages per CPU second of crawls.

``python -m tests.benchmarks.bench_shared [--urls N] [--shards N] [--pages PAGES PAGES] [--plain PAGES PAGES] [--only X]
[--idle N]``

*Steps*: N URLs over 1,000 sites are discovered in batches of 1,000, leased 16 a site and settled, on a Valkey of its
own behind a Unix socket: microseconds of the server and of the client a URL, the server's commands, bytes a URL.
*Crawl*: the web of `bench_crawl`; CPU a page is the slope between a short and a long run, ant and server apart: one
ant on an embedded store, one and two on a Valkey, and scrapy-redis (scheduler, duplicate filter, LinkExtractor). Wall
time beside it, and the reads of the server a page: there are no more round trips than those.
*Idle*: so many connections of ants that have nothing to do look, count and beat as ants do.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from tests.acceptance.crawls import ROOT, policy
from tests.benchmarks.bench_crawl import WEB, served_by
from tests.servers.valkey import single
from webfountain.frontier.cluster.ant_notes import AntNote
from webfountain.frontier.cluster.membership import ControllerState, Membership, join_ants
from webfountain.frontier.orders import COUNT_LONGEST_S, POLL_INTERVAL_S, POLL_LONGEST_S
from webfountain.lab.demo.process import DemoServer
from webfountain.records import Link, Outcome
from webfountain.store.answers import Refill
from webfountain.store.lanes import LANES
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis

    from webfountain.store.contract import FrontierStore

AT = 1.76e9
BATCH, SITES, HAND = 1000, 1000, 16
BEAT_S = 5.0
"""Heartbeat of an ant, s."""
GOALS = {"times scrapy-redis": 8.0, "of embedded": 0.8, "two ants of one": 0.85}
MOST_ROUND_TRIPS = 1.0


class Cost(NamedTuple):
    """The costs of a run: pages, CPU seconds of its processes and of the server, number of reads by the server, and
    wall time.
    """

    pages: int
    own_s: float
    server_s: float = 0.0
    reads: int = 0
    wall_s: float = 0.0


def main() -> int:
    """Print the requested figures. Return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--pages", type=int, nargs=2, default=(2_000, 10_000), metavar="PAGES")
    parser.add_argument("--plain", type=int, nargs=2, default=(500, 2_000), metavar="PAGES", help="of scrapy-redis")
    parser.add_argument("--only", choices=("steps", "idle", "crawl"))
    parser.add_argument("--shards", type=int, default=256, help="of the steps' store")
    parser.add_argument("--idle", type=int, default=300, metavar="N")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)  # servers without an append-only file, one line for each of a thousand ants
    measured: dict[str, Callable[[], dict[str, Any]]] = {
        "steps": lambda: measure_steps(chosen.urls, chosen.shards),
        "idle": lambda: measure_idle(chosen.idle),
        "crawl": lambda: measure_crawl(chosen.pages, chosen.plain),
    }
    found = {name: measure() for name, measure in measured.items() if chosen.only in (None, name)}
    print(json.dumps(found, indent=1))
    crawl = found.get("crawl", {})
    missed = [name for name, goal in GOALS.items() if crawl.get(name, goal) < goal]
    return int(bool(missed) or crawl.get("one ant", {}).get("reads a page", 0.0) > MOST_ROUND_TRIPS)


def measure_steps(urls: int, shards: int) -> dict[str, Any]:
    """Return the microseconds per URL of each step, by server and client, and the commands to the server."""
    with single() as (url, client):
        store = open_store(f"{url}?shards={shards}", collection="bench", period_s=86_400.0)
        store.queues.discover([Link("https://warm.example/", "https://warm.example", bytes(8))], at=AT)
        names = [f"https://site{number:05d}.example.org" for number in range(SITES)]
        links = [
            Link(f"{names[n % SITES]}/p/{n:09d}", names[n % SITES], n.to_bytes(8, "little"), 3) for n in range(urls)
        ]
        found: dict[str, Any] = {}
        client.config_resetstat()
        with _measured(client, found, "discover", urls):
            for start in range(0, urls, BATCH):
                store.queues.discover(links[start : start + BATCH], at=AT)
        with _measured(client, found, "known again", urls):
            for start in range(0, urls, BATCH):
                store.queues.discover(links[start : start + BATCH], at=AT)
        homes = store.sites.activate(SITES, owner="bench", until=AT + 1e6, at=AT)
        held = []
        with _measured(client, found, "lease", urls):
            for start in range(0, SITES, 50):
                for dealt in store.queues.lease(
                    [Refill(home, 0, HAND, HAND, None, [0.0] * LANES) for home in homes[start : start + 50]]
                ):
                    held += dealt.never_crawled if dealt is not None else []
        # As pages land: one of each site, then the next.
        held.sort(key=lambda lease: lease.id.number % HAND)
        with _measured(client, found, "settle", len(held)):
            for start in range(0, len(held), 40):
                store.queues.settle([_outcome(lease) for lease in held[start : start + 40]], at=AT + 60)
        found["lease"]["server us"] *= urls / len(held)
        found["lease"]["client us"] *= urls / len(held)
        stats = client.info("commandstats")
        found["commands"] = {
            name.removeprefix("cmdstat_"): (each["calls"], each["usec_per_call"])
            for name, each in sorted(stats.items(), key=lambda item: -item[1]["usec"])[:12]
        }
        found["bytes a URL"] = client.info("memory")["used_memory_dataset"] / urls
        store.close()
    return found


class _measured:  # noqa: N801  reads as the statement that it is
    def __init__(self, client: redis.Redis, found: dict[str, Any], name: str, urls: int) -> None:
        self._client, self._found, self._name, self._urls = client, found, name, urls

    def __enter__(self) -> None:
        self._server, self._own = _server_s(self._client), time.process_time()

    def __exit__(self, *_: object) -> None:
        own, server = time.process_time() - self._own, _server_s(self._client) - self._server
        self._found[self._name] = {"server us": 1e6 * server / self._urls, "client us": 1e6 * own / self._urls}


def _server_s(client: redis.Redis) -> float:
    info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def _outcome(lease: Any) -> Outcome:
    page = msgspec.structs.replace(
        lease.record, state="crawled", last_crawled=AT + 50, copied=AT + 50, bucket=40, digest="ab" * 20, status=200
    )
    return Outcome(lease.id, "new", page, 0.1)


def measure_idle(ants: int) -> dict[str, float]:
    """Return the share of a core that idle ants cost the server.

    Each ant has a connection, and polls, counts and sends heartbeats. The share of a thousand ants is computed from
    fewer ants, except for heartbeats, whose cost grows with the number of ants.
    """
    with single(maxclients=str(ants + 100)) as (url, client):
        first = open_store(url, collection="bench", period_s=86_400.0)
        first.queues.discover([Link("https://one.example/", "https://one.example", bytes(8))], at=AT)
        first.sites.activate(1, owner="busy", until=AT + 1e6, at=AT)
        stores = [open_store(url, collection="bench", period_s=86_400.0) for _ in range(ants)]
        others = [_member(store, f"ant{number}") for number, store in enumerate(stores)]
        found: dict[str, float] = {"connections": ants}
        every = {"look": _mean_s(POLL_LONGEST_S), "count": _mean_s(COUNT_LONGEST_S), "heartbeat": BEAT_S}

        def act(name: str, at: float) -> None:
            for number, (store, other) in enumerate(zip(stores, others, strict=True)):
                if name == "look":
                    _idle_poll(store, number)
                elif name == "count":
                    store.census.statistics()
                else:
                    _beat(other, at)

        for name, seconds in every.items():
            act(name, AT)  # what the first of each costs is the start's
            before = _server_s(client)
            for round_number in range(5):
                act(name, AT + BEAT_S * (1 + round_number))
            cost = (_server_s(client) - before) / ants / 5
            found |= {f"server us a {name}": 1e6 * cost, f"1,000 ants' {name}s, of a core": 1000 * cost / seconds}
        for store in [first, *stores]:
            store.close()
    return found


def _mean_s(longest_s: float) -> float:
    """Return the mean time between two polls of an ant that has been idle for long, s."""
    return POLL_INTERVAL_S + 0.75 * (longest_s - POLL_INTERVAL_S)


def _idle_poll(store: FrontierStore, number: int) -> None:
    """Poll the store like the store worker of an ant without sites."""
    assert store.claims is not None
    feed = store.feed()
    assert feed is not None
    feed.take(16, until=AT + 60.0, at=AT)
    store.claims.collect(f"ant{number}")
    store.sites.next_due()


def _member(store: FrontierStore, name: str) -> Membership:
    assert store.claims is not None
    return join_ants(store, store.claims, owner=name, heartbeat_s=BEAT_S, start=AT, plans=True)


def _beat(one: Membership, at: float) -> None:
    counts = {f"metric/{number}": float(number) for number in range(40)}
    request = one.request(AntNote(at, counts=counts), leases=[], claimed=[], controller=ControllerState())
    one.take_in(one.heartbeats.carry_out(request))


def measure_crawl(ours: tuple[int, int], plain: tuple[int, int]) -> dict[str, Any]:
    """Return the CPU milliseconds of one more page for each kind of crawl, by ants and server, and the sums."""
    folder = Path(tempfile.mkdtemp(prefix="wf-"))
    runs: dict[str, tuple[Callable[[int, Path], Cost], tuple[int, int]]] = {
        "embedded": (_embedded, ours),
        "one ant": (_one_ant, ours),
        "two ants": (_two_ants, ours),
        "scrapy-redis": (_scrapy_redis, plain),
    }
    try:
        # The short runs of all, then the long ones: a machine that is busy for a while is so for all.
        costs = {name: [run(few, folder)] for name, (run, (few, _)) in runs.items()}
        for name, (run, (_, many)) in runs.items():
            costs[name].append(run(many, folder))
    finally:
        shutil.rmtree(folder)
    found: dict[str, Any] = {}
    for name, (first, second) in costs.items():
        pages = second.pages - first.pages
        own, server = 1000 * (second.own_s - first.own_s) / pages, 1000 * (second.server_s - first.server_s) / pages
        found[name] = {
            "own ms": own,
            "server ms": server,
            "wall ms": 1000 * (second.wall_s - first.wall_s) / pages,
            "reads a page": (second.reads - first.reads) / pages,
            "pages a CPU s": 1000 / (own + server),
        }
    rate = {name: each["pages a CPU s"] for name, each in found.items()}
    found["times scrapy-redis"] = rate["one ant"] / rate["scrapy-redis"]
    found["of embedded"] = found["embedded"]["own ms"] / found["one ant"]["own ms"]
    found["two ants of one"] = rate["two ants"] / rate["one ant"]
    return found


def _embedded(pages: int, folder: Path) -> Cost:
    return _ours(pages, folder, f"rocksdb://{folder}/embedded-{pages}", [])


def _one_ant(pages: int, folder: Path) -> Cost:
    with single(save="") as (url, client), _ServerWork(client) as served:
        return served.with_server(_ours(pages, folder, url, []))


def _two_ants(pages: int, folder: Path) -> Cost:
    with single(save="") as (url, client), _ServerWork(client) as served:
        return served.with_server(_ours(pages, folder, url, ["--ants", "2"]))


class _ServerWork:
    """The work of a server for a crawl."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def __enter__(self) -> Self:
        self._begin = _server_s(self._client), self._reads()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def with_server(self, cost: Cost) -> Cost:
        """Return the cost of a crawl with the cost of its server."""
        server_s, reads = self._begin
        return cost._replace(server_s=_server_s(self._client) - server_s, reads=self._reads() - reads)

    def _reads(self) -> int:
        return int(self._client.info("stats")["total_reads_processed"])


def _ours(pages: int, folder: Path, store: str, more: list[str]) -> Cost:
    with DemoServer(**WEB) as server:
        collection = policy(folder, server.urls)
        place = folder / f"repository-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "webfountain", "crawl", str(collection), "--store", store]
        command += ["--repository", str(place), "--max-pages", str(pages), "--json", *more]
        begin = time.monotonic()
        own = _cpu(command)
        wall = time.monotonic() - begin
        shutil.rmtree(place, ignore_errors=True)
        return Cost(served_by(server), own, wall_s=wall)


def _scrapy_redis(pages: int, folder: Path) -> Cost:
    with DemoServer(**WEB) as server, single(save="") as (url, client), _ServerWork(client) as served:
        seeds = folder / "seeds.json"
        seeds.write_text(json.dumps(server.urls))
        begin = time.monotonic()
        own = _cpu([sys.executable, "-m", "tests.benchmarks.plain_scrapy", str(seeds), str(pages), "--redis", url])
        return served.with_server(Cost(served_by(server), own, wall_s=time.monotonic() - begin))


def _cpu(command: list[str]) -> float:
    """Return the CPU seconds of a process and of the children that it waited for."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"status {process.returncode}: {command}"
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
