"""Many sites in bounded memory: each is asked once, the seeds load fast, next_request does not care how many there are.

The crawl is a whole one, in its own process, but for the sockets (`no_io`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.crawls import policy, records, run
from tests.acceptance.no_io import site
from webfountain import settings as door

if TYPE_CHECKING:
    from pathlib import Path

HANDLERS = dict.fromkeys(("http", "https"), "tests.acceptance.no_io.NoIoHandler")
MEGABYTE = 1_000_000


def crawl(folder: Path, *, sites: int, pages: int, active: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Report of a crawl of so many sites, and the times of next_request."""
    (folder / "seeds.txt").write_text("".join(f"{site(n)}\n" for n in range(sites)))
    collection = policy(folder, [], collection={"seeds_file": "seeds.txt"})
    chosen = {
        "DOWNLOAD_HANDLERS": json.dumps({**door.DOWNLOAD_HANDLERS, **HANDLERS}),
        "EXTENSIONS": json.dumps({**door.EXTENSIONS, "tests.acceptance.no_io.NextRequestTimes": 1}),
        "TEST_COUNTS": folder / "counts",
        "TEST_TIMES": folder / "times.json",
        "TEST_PAGES": pages,
        "WEBFOUNTAIN_ACTIVE_SITES": active,
    }
    options = [option for name, value in chosen.items() for option in ("-s", f"{name}={value}")]
    report = run(collection, folder / "store", "--until-idle", *options, seconds=1200)
    return report, json.loads((folder / "times.json").read_text())


def check(folder: Path, report: dict[str, Any], *, sites: int, pages: int) -> None:
    """Every page of every site is known as crawled, and the server (so to speak) saw each home page once."""
    counts = (folder / "counts").read_bytes()
    assert set(counts[:sites]) == {1}
    assert sum(counts) == sites
    assert report["pages_fetched"] == report["new"] == sites * pages
    assert sum(record.state == "crawled" for record in records(folder / "store")) == sites * pages


def test_every_site_of_a_long_seed_list_is_asked_once_in_bounded_memory(tmp_path: Path) -> None:
    report, times = crawl(tmp_path, sites=5000, pages=1, active=1000)
    check(tmp_path, report, sites=5000, pages=1)
    assert report["peak_rss_bytes"] < 300 * MEGABYTE
    assert times["median"] < 50e-6


@pytest.mark.soak
def test_a_hundred_thousand_sites_are_asked_once_in_bounded_memory(tmp_path: Path) -> None:
    report, times = crawl(tmp_path, sites=100_000, pages=1, active=1000)
    print(report, times)
    check(tmp_path, report, sites=100_000, pages=1)
    assert report["peak_rss_bytes"] < 300 * MEGABYTE
    assert report["startup_seconds"] < 20


@pytest.mark.soak
def test_next_request_takes_50_microseconds_with_10_000_active_sites(tmp_path: Path) -> None:
    report, times = crawl(tmp_path, sites=10_000, pages=4, active=10_000)
    print(report, times)
    check(tmp_path, report, sites=10_000, pages=4)
    assert times["median"] < 50e-6
    assert times["p99"] < 1e-3
