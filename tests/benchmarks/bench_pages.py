"""Measure the CPU milliseconds to read, render and compress a page for a browser, and its compressed kB.

``python -m tests.benchmarks.bench_pages [--pages N] [--sites N]``; reading rows and filling templates dominate. One
site was crawled with all versions, one has 5,000 pages, the others have pages that wait. A search index has 10^5 pages
of 40 words each. Bounds of the project: 50 ms of CPU and 100 kB compressed at 10^6 pages on 10^4 sites; the
tools for language models answer within 200 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from tests.api.crawled import SITES, crawled_store, served
from tests.benchmarks.bench_search import drawn
from tests.benchmarks.bench_service import fill
from webfountain.api.search import INDEX_FILE
from webfountain.history.archive import Archive
from webfountain.history.live import LiveSite, LiveSnapshot
from webfountain.history.publishing import FilePlace
from webfountain.history.sample import HistorySample
from webfountain.policy.collection_file import CollectionInForce
from webfountain.records import Link
from webfountain.report.store_reading import reading
from webfountain.search.search_index import IndexedText, SearchIndex
from webfountain.service.mcp_tools import CollectionTools
from webfountain.service.pages.views import VIEWS
from webfountain.service.pages.word_diff import WordBudget, diff_rows
from webfountain.service.served_store import ServedStore
from webfountain.service.settings import StoreEntry
from webfountain.store.contract import COLLECTION
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROUNDS = 7
DAYS = 2
LARGE = "https://large.example"
CRAWLED = SITES[0]
CHANGED = f"{CRAWLED}/"
"""A page with many versions."""
RULES = """
[collection]
name = "test"
seeds = ["http://a.example/", "https://site-000001.example/"]
scope = "any"
[politeness]
user_agent = "bench (+https://example.org/bot)"
"""


def filled(folder: Path, *, pages: int, sites: int) -> str:
    """Make the store of all benchmarks of pages. Return the name of a site in its middle."""
    url = crawled_store(folder, seconds=3600.0, rest='[repository]\nkeep = "all"\n[changes]\ndiff = true')
    site = fill(url, sites=sites, pages=pages)
    store = open_store(url, collection=None, period_s=None)
    urls = [f"{LARGE}/some/page-{page}" for page in range(5000)]
    store.queues.discover([Link(each, LARGE, fingerprint(each)) for each in urls], at=1.0)
    store.board.put_value(COLLECTION, msgspec.msgpack.encode(CollectionInForce("/policy.toml", RULES)))
    store.close()
    enliven(folder, pages=pages, sites=sites)
    return site


def index(folder: Path, pages: int) -> None:
    """Make a search index of `pages` pages, including the crawled pages."""
    with reading(f"rocksdb://{folder}") as store:
        end = store.changes.end()
    _, texts = drawn(pages, words=40)
    found, batch = SearchIndex(folder / INDEX_FILE), list[IndexedText]()
    for number, text in enumerate(texts):
        name = f"{CRAWLED}/{number}" if number < 30 else f"https://site-{number % 1000}.example/{number}"
        batch.append(IndexedText(name, "new", float(number), text[:40], f"{text} words of a page"))
        if len(batch) == 1000:
            found.apply(batch, end)
            batch = []
    found.apply(batch, end)
    found.close()


def enliven(folder: Path, *, pages: int, sites: int) -> None:
    """Add a history up to now, changes, and a live snapshot of 200 sites."""
    store, at = open_store(f"rocksdb://{folder}", collection=None, period_s=None), time.time()
    archive = Archive(store.board)
    for minute in range(DAYS * 1440):
        start = at // 60 * 60 - 60.0 * (DAYS * 1440 - minute)
        outcomes = (5, 3, 2, 40, 20, 1, 1, 4, 0, 0)
        archive.add(
            HistorySample(
                start, 60.0, (pages, 0, 0, 0, 0, 0), sites, 100, outcomes, {"timeout": 3}, planned=80.0,
                freshness=0.8 + minute % 100 / 1000, freshness_low=0.7, freshness_high=0.95,
            )
        )  # fmt: skip
    for number in range(2000):
        home = f"https://site-{number % sites:06}.example"
        store.pages.forget(home, fingerprint(f"{home}/some/page-{number // sites + 2}"), at=at - 2000 + number)
    store.close()
    live = [
        LiveSite(f"https://site-{number:06}.example", "polite", at + 5, 0, 10, 0, 0, number % 7, "192.0.2.1")
        for number in range(200)
    ]
    known = {"never-crawled": pages, "crawled": 0, "redirected": 0, "gone": 0, "refused": 0, "failed": 0}
    FilePlace(folder).put(
        LiveSnapshot(
            "bench", 1, at - 9000, at, 0.0, 99999, 12.5, "politeness", known, sites, 1000, 20, 3, 9000, 0, 400, None,
            None, {"polite": 800, "ready": 200}, live, {},
        )
    )  # fmt: skip


async def ask(url: str, site: str) -> None:
    """Request each page, and print its costs."""
    changed = f"?url={quote(CHANGED)}"
    more = dict.fromkeys(("site", "pages"), f"?site={quote(site)}") | dict.fromkeys(
        ("page", "compare", "links"), changed
    )
    async with served(url) as service:
        await service.log_in()
        headers = {"Accept-Encoding": "gzip"}
        paths = {"home": "/"} | {each.name: f"/collections/one{each.path}{more.get(each.name, '')}" for each in VIEWS}
        paths |= {
            "overview, 4 days": "/collections/one?span=days",
            "failing sites": "/collections/one/sites?only=failing",
            "sites by pages": "/collections/one/sites?sort=pages",
            "a page that waits": f"/collections/one/page?url={quote(site)}/some/page-1",
            "a crawled site": f"/collections/one/site?site={quote(CRAWLED)}",
            "a large site": f"/collections/one/site?site={quote(LARGE)}",
            "changes of one page": f"/collections/one/changes?prefix={quote(CHANGED)}",
            "no change matches": "/collections/one/changes?site=https://none.example",
            "words in all pages": "/collections/one/search?words=words",
            "a phrase": "/collections/one/search?words=%22words+of+a+page%22",
        }
        for name, path in paths.items():
            times, size, seconds = [], 0, []
            for _ in range(ROUNDS + 1):
                began, at = time.process_time(), time.perf_counter()
                async with service.client.get(service.address + path, headers=headers) as response:
                    size = int(response.headers.get("Content-Length", 0))
                    await response.read()
                    assert response.status == 200, name
                times.append(time.process_time() - began)
                seconds.append(time.perf_counter() - at)
            cpu, wall = median(times[1:]) * 1000, median(seconds[1:]) * 1000
            print(f"{name:20} {cpu:7.1f} ms CPU  {size / 1000:7.1f} kB  {wall:7.1f} ms")


async def ask_tools(url: str, site: str) -> None:
    """Print how long the tools for language models take."""
    store = ServedStore(StoreEntry("one", url))
    tools, page = CollectionTools(store), f"{site}/some/page-1"
    calls: dict[str, Callable[[], Awaitable[str]]] = {
        "freshness": tools.freshness,
        "freshness of a page": lambda: tools.freshness(page),
        "changes_since": lambda: tools.changes_since(hours=1.0),
        "search": lambda: tools.search("words of"),
        "search of a phrase": lambda: tools.search('"words of"'),
        "read_page": lambda: tools.read_page(CHANGED),
        "explain": lambda: tools.explain(page),
        "explain an unknown URL": lambda: tools.explain(f"{site}/unknown"),
        "fetch_now": lambda: tools.fetch_now([page]),
    }
    for name, call in calls.items():
        times, seconds = [], []
        for _ in range(ROUNDS + 1):
            began, at = time.process_time(), time.perf_counter()
            assert "error" not in (answer := json.loads(await call())), f"{name}: {answer}"
            times.append(time.process_time() - began)
            seconds.append(time.perf_counter() - at)
        cpu, wall = median(times[1:]) * 1000, median(seconds[1:]) * 1000
        print(f"tool {name:24} {cpu:7.1f} ms CPU  {wall:7.1f} ms")
    store.close()


def differences() -> None:
    """Print the largest cost of the differences of one page of changes."""
    draw = random.Random(3)
    words = [f"word{number}" for number in range(3000)]
    texts = [[" ".join(draw.choices(words, k=60)) for _ in range(25)] for _ in range(60)]
    diffs = ["\n".join(difflib.unified_diff(a, b, lineterm="")) for a, b in zip(texts[::2], texts[1::2], strict=True)]
    times = []
    for _ in range(ROUNDS):
        began, budget = time.process_time(), WordBudget()
        assert all(diff_rows(each, budget) for each in diffs)
        times.append(time.process_time() - began)
    print(f"30 differences of {len(diffs[0]) / 1000:.0f} kB: {median(times) * 1000:.1f} ms CPU")


def main() -> None:
    """Fill a store, and print the figures. The client runs in the same process, so the figures include its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--indexed", type=int, default=100_000)
    given = parser.parse_args()
    differences()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        site = filled(folder, pages=given.pages, sites=given.sites)
        index(folder, given.indexed)
        asyncio.run(ask(f"rocksdb://{folder}", site))
        asyncio.run(ask_tools(f"rocksdb://{folder}", site))


if __name__ == "__main__":
    main()
