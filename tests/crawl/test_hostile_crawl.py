"""One crawl of hostile sites and a plain one: every page has an outcome, and nobody waits for anybody."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.crawl.pace import slowness
from tests.crawl.test_hostile import PAGES, WORDS
from tests.servers.hostile import BEHAVIOURS, HostileServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 8
"""On an idle machine; the crawl and its server keep both of two cores busy for a while."""
POLICY = """
[collection]
name = "hostile"
seeds = {seeds}
limits = {{ depth = 1 }}
[politeness]
min_delay = "10ms"
delay_factor = 0
timeout = "{timeout}s"
[network]
allow_private = true
[policies.default]
revisit = {{ min_interval = "1h" }}
"""


class Crawl(NamedTuple):
    """What a crawl left behind: its report, the page records by URL, the sites by behaviour; the time-out it had."""

    timeout: float
    report: dict[str, Any]
    pages: dict[str, dict[str, Any]]
    sites: dict[str, str]

    def page(self, name: str, path: str) -> dict[str, Any]:
        """One page's record."""
        return self.pages[self.sites[name].rstrip("/") + path]


def run(folder: Path, *arguments: str, seconds: float = 240.0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """All hostile pages in one crawl, two time-outs long: one for those that time out, one for all else."""
    folder = tmp_path_factory.mktemp("hostile")
    timeout = math.ceil(TIMEOUT_S * slowness())
    store = f"rocksdb://{folder}/store"
    with HostileServer(*PAGES) as server:
        (folder / "hostile.toml").write_text(
            POLICY.format(seeds=json.dumps(sorted(server.sites.values())), timeout=timeout)
        )
        settings = {"STORE": store, "REPORT": "report.json", "MAX_SECONDS": str(2 * timeout)}
        options = [part for name, value in settings.items() for part in ("-s", f"WEBFOUNTAIN_{name}={value}")]
        command = ["scrapy", "crawl", "fountain", "-a", "collection=hostile.toml", "-s", "LOG_LEVEL=WARNING", *options]
        run(folder, *command, seconds=10 * timeout)
        pages = run(folder, "webfountain", "pages", "--jsonl", "--store", store).splitlines()
        records = {record["url"]: record for record in map(json.loads, pages)}
        yield Crawl(timeout, json.loads((folder / "report.json").read_text()), records, server.sites)


@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_page_has_its_outcome_and_its_site_is_crawled_all_the_same(crawl: Crawl, name: str) -> None:
    bad = crawl.page(name, "/bad")
    assert bad["state"] != "never-crawled"
    if name in WORDS:
        assert (bad["state"], bad["error"]) == ("failed", WORDS[name])
    states = {"crawled" if kind in ("new", "not_modified") else kind for kind in BEHAVIOURS[name].outcomes}
    assert bad["state"] in states
    assert crawl.page(name, "/")["status"] == 200


def test_the_plain_site_and_the_good_pages_are_crawled(crawl: Crawl) -> None:
    assert crawl.page("plain", "/good")["state"] == "crawled"
    good = [name for name in PAGES if crawl.page(name, "/good")["state"] == "crawled"]
    assert len(good) > 0.8 * len(PAGES)  # the others wait out a back-off that their site asked for


def test_the_crawl_stays_small_and_reports_the_hostile_pages(crawl: Crawl) -> None:
    report = crawl.report
    assert report["finish_reason"] == "max_seconds"
    assert report["seconds"] < 3 * crawl.timeout
    assert report["peak_rss_bytes"] < 350_000_000
    assert set(WORDS.values()) <= set(report["by_error"])
    outcomes = ("new", "changed", "minor", "same", "not_modified", "redirected", "gone", "failed")
    assert report["pages_fetched"] == sum(report[kind] for kind in outcomes) > 2 * len(PAGES)
