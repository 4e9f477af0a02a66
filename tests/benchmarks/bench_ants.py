"""Measure what many ants cost together, and how long the sites of a dead ant wait.

*Takeover*: the time from SIGKILL of an ant to the first request of another ant to each of its sites, and the time of an
end by SIGTERM. Four ants crawl with a heartbeat of 5 s, then of 1 s. The servers of the sites measure the waits, in
wall time. Most of the time is the lease (up to two heartbeats), the site's delay, and the half second between two
polls.

*Growth*: a number of ants crawl a web with 60 pages per site for a time, through a handler without I/O. Printed are the
CPU time of ants and server per page, the commands and round trips per page, and the bytes per URL.

*Split*: one ant and then two ants crawl one very large site without I/O, with more slots than one ant can use. Printed
are pages per second of wall time, and the CPU time. A loan can gain at most a second core.

``python -m tests.benchmarks.bench_ants [--only takeover|growth|split] [--ants N] [--sites N] [--seconds S] [--shards N]
[--beat S]``
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.crawls import ROOT, policy
from tests.acceptance.no_io import NoIoHandler, site
from tests.acceptance.test_ants import opened, until
from tests.acceptance.test_chaos import DELAY, Chaos
from tests.acceptance.test_many_sites import HANDLERS
from tests.servers.town import Town
from tests.servers.valkey import single
from webfountain import settings as door
from webfountain.frontier.cluster.ant_notes import ants_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.http import Response

PAGES = 60
SPLIT = ("pages", "pages a second", "cores", "ants' CPU ms a page", "server CPU ms a page", "reads a page")


def measured(beat_s: float) -> tuple[list[float], float]:
    """Return the seconds from the kill to the next request, for each address of the dead ant, and the seconds from
    SIGTERM to the end.
    """
    town = Town([f"127.0.11.{number}" for number in range(1, 21)], 4, 60)
    with tempfile.TemporaryDirectory() as folder, town, Chaos(town, Path(folder) / "s", ants=4, beat_s=beat_s) as chaos:
        until(lambda: len({visit.address for visit in town.visits}) == 20 and len(chaos.ants()) == 4)
        time.sleep(4.0 * beat_s)  # until sites are shared out
        victim = _busiest(Path(folder) / "s")
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        time.sleep(4.0 * beat_s + 4.0)
        chaos.crawl.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        chaos.crawl.process.wait()
        ended_s = time.monotonic() - began
    first: dict[str, float] = {}
    for visit in town.visits:
        if visit.start > killed + 0.1:
            first.setdefault(visit.address, visit.start)
    waits = [at - killed for at in first.values() if at - killed > 4 * DELAY]
    assert len(first) == 20, "somebody asks at every address again"
    assert waits, "the ant that was killed had an address"
    return sorted(waits), ended_s


def _busiest(folder: Path) -> int:
    """Return the process with the most sites."""
    with opened(folder) as store:
        assert store.claims is not None
        ants = ants_of(store.claims, time.time())
    return int(max(ants, key=lambda name: ants[name].sites).rsplit("-", 2)[1])


class OneLargeSite(NoIoHandler):
    """A site of which each page has 60 links: 20 own links, and 40 links that all pages have."""

    def links(self, url: str) -> str:
        """Return the links of a page: page n leads to pages 20n + 1 to 20n + 20."""
        name = url.rpartition("/")[2]
        page = int(name) if name.isdecimal() else 0
        named = (*range(20 * page + 1, 20 * page + 21), *range(1, 41))
        return "".join(f'<a href="/{n}">page {n}</a>' for n in named)

    async def download_request(self, request: Request) -> Response:
        self._body = f"<title>A page</title><p>Words of a page.</p>{self.links(request.url)}".encode()
        return await super().download_request(request)


def growth(
    ants: int,
    sites: int,
    seconds: float,
    *,
    shards: int,
    beat_s: float,
    handlers: Mapping[str, str] = HANDLERS,
    **tables: Mapping[str, object],
) -> dict[str, float]:
    """Return the costs of a page in a crawl without I/O, by numbers of sites, ants and shards."""
    with tempfile.TemporaryDirectory() as name, single(save="") as (url, client):
        folder = Path(name)
        (folder / "seeds.txt").write_text("".join(f"{site(n)}\n" for n in range(sites)))
        collection = policy(folder, [], collection={"seeds_file": "seeds.txt"}, **tables)
        chosen = {
            "DOWNLOAD_HANDLERS": json.dumps({**door.DOWNLOAD_HANDLERS, **handlers}),
            "TEST_COUNTS": folder / "counts",
            "TEST_PAGES": PAGES,
            "WEBFOUNTAIN_HEARTBEAT_SECONDS": beat_s,
        }
        command = [
            sys.executable,
            "-m",
            "webfountain",
            "crawl",
            str(collection),
            "--store",
            f"{url}?shards={shards}",
            "--json",
        ]
        command += [option for key, value in chosen.items() for option in ("-s", f"{key}={value}")]
        command += [f"--repository={folder}/copies", f"--ants={ants}", f"--max-seconds={seconds}"]
        command += [f"--report={folder}/report", "--until-idle"]
        before = client.info("all")
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        after, report = client.info("all"), json.loads((folder / "report").read_bytes())
    pages, known = report["pages_fetched"], sum(report["pages"].values())
    reported = {key: after[key] - before[key] for key in ("used_cpu_user", "used_cpu_sys", "total_reads_processed")}
    commands = after["total_commands_processed"] - before["total_commands_processed"]
    return {
        "pages": pages,
        "known URLs": known,
        "seconds": report["seconds"],
        "pages a second": pages / report["seconds"],
        "cores": report["cpu_seconds"] / report["seconds"],
        "ants' CPU ms a page": 1000 * report["cpu_seconds"] / pages,
        "server CPU ms a page": 1000 * (reported["used_cpu_user"] + reported["used_cpu_sys"]) / pages,
        "reads a page": reported["total_reads_processed"] / pages,
        "commands a page": commands / pages,
        "bytes a known URL": (after["used_memory"] - before["used_memory"]) / known,
        "peak MB of an ant": report["peak_rss_bytes"] / ants / 1e6,
    }


def split(seconds: float, *, shards: int, beat_s: float) -> None:
    """Print the rates of one ant and of two ants on one site."""
    handlers = dict.fromkeys(HANDLERS, f"{__spec__.name}.OneLargeSite")
    slots = {"min_delay": "20ms", "concurrency": 100}
    for ants in (1, 2, 1, 2):
        reported = growth(ants, 1, seconds, shards=shards, beat_s=beat_s, handlers=handlers, politeness=slots)
        print(json.dumps({"ants": ants} | {key: round(reported[key], 3) for key in SPLIT}))


def main() -> None:
    """Print the chosen figures, or takeover and growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("takeover", "growth", "split"))
    parser.add_argument("--ants", type=int, default=16)
    parser.add_argument("--sites", type=int, default=17_000)
    parser.add_argument("--shards", type=int, default=16, help="of the store; as many as a private server's has")
    parser.add_argument("--beat", type=float, default=5.0, help="s; many ants on few cores are late for a short one")
    parser.add_argument("--seconds", type=float, default=600.0)
    chosen = parser.parse_args()
    if chosen.only == "split":
        split(chosen.seconds, shards=chosen.shards, beat_s=chosen.beat)
        return
    limits = {"ants": chosen.ants, "sites": chosen.sites, "seconds": chosen.seconds}
    if chosen.only != "takeover":
        print(json.dumps(growth(**limits, shards=chosen.shards, beat_s=chosen.beat), indent=1))
    for beat_s in (5.0, 1.0) if chosen.only != "growth" else ():
        waits, ended_s = measured(beat_s)
        print(
            f"heartbeat {beat_s:.0f} s: {len(waits)} addresses of the dead ant, next request after {waits[0]:.1f} s at "
            f"least, {statistics.median(waits):.1f} s (median), {waits[-1]:.1f} s at most; a signal ended all after "
            f"{ended_s:.1f} s"
        )


if __name__ == "__main__":
    main()
