"""Killed again and again where pages used to be stranded: slow sites, leases of 5 s, callbacks that take longer.

A project under the add-on crawls some slow sites and is killed at random moments. In the end every page was crawled,
every item is in the feed, and none more than twice. ``WEBFOUNTAIN_SOAK_KILLS`` is how often (30, some seven minutes).

Each site has an address of its own, and waits after a page twice as long as it took: after a slow one that is longer
than a lease, too. With the ten times that a project gets, the crawl would wait an hour, and prove no more.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import policy
from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLS = int(os.environ.get("WEBFOUNTAIN_SOAK_KILLS", "30"))
LEASE_S = 5
SITES = 5
PAGES_A_KILL = 4
SPIDER = """
    import asyncio, time
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            for base in self._bases.split():
                yield scrapy.Request(base + "/0")
        async def parse(self, response):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link)
            number = int(response.url.rpartition("/")[2])
            if number % 40 == 7:
                await asyncio.sleep(7)
            if number % 40 == 23:
                time.sleep(6)
            yield {"url": response.url}
"""
SETTINGS = f"""
    WEBFOUNTAIN_COLLECTION = "policy.toml"
    WEBFOUNTAIN_LEASE_SECONDS = {LEASE_S}
    CONCURRENT_REQUESTS_PER_DOMAIN = 1
    LOG_LEVEL = "WARNING"
"""


def slow(pages: int, seed: int) -> dict[str, float]:
    """Seconds before each page of a site is answered: most are quick, some take half a lease, few longer than one."""
    rng = random.Random(seed)
    return {f"/{number}": rng.choices((0.02, 2.6, 5.5), (90, 8, 2))[0] for number in range(pages)}


def answering(pages: int, seconds: dict[str, float]) -> Callable[[ReceivedRequest], Answer]:
    """A tree of pages, each with three children."""

    def answer(asked: ReceivedRequest) -> Answer:
        time.sleep(seconds.get(asked.path, 0.0))
        number = int(asked.path[1:])
        children = (child for child in range(3 * number + 1, 3 * number + 4) if child < pages)
        return Answer("".join(f'<a href="/{child}">{child}</a>' for child in children))

    return answer


def crawl_killed_and_resumed(folder: Path, *, kills: int, pages: int, seed: int) -> tuple[int, Counter[str]]:
    """How often it was killed, and how often each page was asked; raises where an item is missing or came thrice."""
    rng = random.Random(seed)
    project = Project(folder, SPIDER, settings=SETTINGS)
    killed = 0
    with contextlib.ExitStack() as stack:
        sites = [
            stack.enter_context(Site(answering(pages, slow(pages, seed + n)), address=f"127.0.0.{n + 1}"))
            for n in range(SITES)
        ]
        policy(
            folder,
            [site.base for site in sites],
            collection={"scope": "any"},
            politeness={"user_agent": "theirs/1.0 (+https://example.org)", "min_delay": "0s", "delay_factor": 2},
        )
        bases = " ".join(site.base for site in sites)
        for _ in range(kills):
            before = sum(len(site.asked) for site in sites)
            process = project.start("theirs", _bases=bases)
            while process.poll() is None and sum(len(site.asked) for site in sites) == before:
                time.sleep(0.05)
            with contextlib.suppress(Exception):
                process.wait(rng.uniform(0.0, 1.5 * LEASE_S))
            if process.poll() is not None:
                break
            process.kill()
            process.communicate()
            killed += 1
        last = stack.enter_context(project.start("theirs", _bases=bases))
        stack.callback(last.kill)
        _, log = last.communicate(timeout=240 + 5 * pages)
        assert last.returncode == 0, log[-4000:]
        expected = {f"{site.base}/{number}" for site in sites for number in range(pages)}
        asked = Counter(site.base + path for site in sites for path in site.paths)
    # The last line of a life may be cut.
    items = Counter(re.findall(r'\{"url": "([^"]*)"\}', (folder / "items.jsonl").read_text()))
    assert set(asked) == expected, f"never asked: {sorted(expected - set(asked))[:5]}"
    assert set(items) == expected, f"no item: {sorted(expected - set(items))[:5]}"
    assert max(items.values()) <= 2, items.most_common(3)
    return killed, asked


@pytest.mark.soak
def test_thirty_kills_strand_no_page_lose_no_item_and_repeat_none_more_than_once(tmp_path: Path) -> None:
    killed, asked = crawl_killed_and_resumed(tmp_path, kills=KILLS, pages=PAGES_A_KILL * KILLS, seed=7)
    print(f"{killed} kills, {asked.total()} requests for {len(asked)} pages, at most {max(asked.values())} for one")
    assert killed >= 2 * KILLS // 3
