"""Requests that are no plain data: made once, whatever is stopped, killed and run again."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 12
SPIDER = """
class Theirs(scrapy.Spider):
    name = "theirs"
    async def start(self):
        yield scrapy.Request(self.base + "/list", dont_filter=self.again == "yes")
    def parse(self, response):
        for n in range(12):
            yield response.follow(f"/page/{n}", lambda response, n=n: {"n": n})
"""


def slow(asked: ReceivedRequest) -> Answer:
    """Each page takes a little."""
    time.sleep(0.03)
    return Answer(f"<p>{asked.path}</p>")


def project(folder: Path) -> Project:
    return Project(folder, SPIDER, settings="CONCURRENT_REQUESTS_PER_DOMAIN = 2")


def interrupted(folder: Path, site: Site, end: signal.Signals, *, again: str) -> Project:
    """A crawl that was ended after some pages."""
    theirs = project(folder)
    process = theirs.start("theirs", base=site.base, again=again)
    while len(site.paths) < 6:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(end)
    process.communicate(timeout=240)
    return theirs


def test_a_finished_spider_is_not_scraped_again(tmp_path: Path) -> None:
    with Site(slow) as site:
        theirs = project(tmp_path)
        for _ in range(3):
            log = theirs.crawl("theirs", base=site.base, again="yes")
    assert Counter(site.paths) == {"/list": 3, **{f"/page/{n}": 1 for n in range(PAGES)}}
    assert len(theirs.items) == PAGES
    assert "not repeated: 12." in log


@pytest.mark.parametrize("again", ["yes", "no"])
def test_a_stopped_spider_goes_on_and_makes_nothing_twice(tmp_path: Path, again: str) -> None:
    with Site(slow) as site:
        theirs = interrupted(tmp_path, site, signal.SIGTERM, again=again)
        before = len(theirs.items)
        theirs.crawl("theirs", base=site.base, again=again)
        theirs.crawl("theirs", base=site.base, again=again)
    assert 0 < before < PAGES
    assert sorted(item["n"] for item in theirs.items) == list(range(PAGES))
    assert {path: many for path, many in Counter(site.paths).items() if path != "/list" and many > 1} == {}


def test_a_killed_spider_loses_nothing_and_repeats_what_was_under_way(tmp_path: Path) -> None:
    with Site(slow) as site:
        theirs = interrupted(tmp_path, site, signal.SIGKILL, again="no")
        theirs.crawl("theirs", base=site.base, again="no")
        theirs.crawl("theirs", base=site.base, again="no")
    assert {item["n"] for item in theirs.items} == set(range(PAGES))
    asked = Counter(site.paths)
    assert sum(asked.values()) - len(asked) <= 1 + 2 + 4, "the list, two under way, and what was not settled yet"


def test_a_request_that_is_not_yielded_again_does_not_delay_the_end(tmp_path: Path) -> None:
    with Site(slow) as site:
        theirs = interrupted(tmp_path, site, signal.SIGTERM, again="no")
        spiders = theirs.folder / "theirs" / "spiders.py"
        spiders.write_text(spiders.read_text().replace("range(12)", "range(0)"))
        log = theirs.crawl("theirs", base=site.base, again="no")
        asked = len(site.paths)
        theirs.crawl("theirs", base=site.base, again="no")
        assert len(site.paths) == asked
    assert "'addon/lost_in_memory'" in log
    assert "'finish_reason': 'finished'" in log
