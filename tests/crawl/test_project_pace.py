"""Pace of a project without a collection file: its own settings, as Scrapy keeps them."""

from __future__ import annotations

import re
import statistics
import threading
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import scrapy
from scrapy.settings import Settings

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site
from webfountain.crawl.project_pace import user_agent_of

if TYPE_CHECKING:
    import subprocess

SPIDER = """
class Theirs(scrapy.Spider):
    name = "theirs"
    async def start(self):
        for i in range(int(self.pages)):
            yield scrapy.Request(self.base + f"/{i}", meta=self.meta())
    def meta(self):
        return {}
    def parse(self, response):
        yield {"url": response.url}
"""


def template() -> str:
    """What `scrapy startproject` writes into settings.py about the pace."""
    file = Path(scrapy.__file__).parent / "templates" / "project" / "module" / "settings.py.tmpl"
    found = re.findall(r"^(?:ROBOTSTXT|CONCURRENT|DOWNLOAD|AUTOTHROTTLE)_.*$", file.read_text(), re.MULTILINE)
    assert {line.split(" ")[0] for line in found} >= {"CONCURRENT_REQUESTS_PER_DOMAIN", "DOWNLOAD_DELAY"}
    return "\n".join(found)


class SlowSite:
    """A site that takes its time; knows when it was asked and how many waited for it at once."""

    def __init__(
        self, seconds: float, *, robots: str | None = None, status: int = 200, after: str = "", crowd: int = 0
    ) -> None:
        """`crowd`: it answers when so many wait, or after some seconds."""
        self._seconds = seconds
        self._crowd = crowd
        self._lock = threading.Condition()
        self._now = 0
        self._status, self._after = status, after
        self.most = 0
        self.at: list[float] = []
        self.site = Site(self.answer, robots=robots)

    def answer(self, asked: ReceivedRequest) -> Answer:
        del asked
        with self._lock:
            self.at.append(time.monotonic())
            self._now += 1
            self.most = max(self.most, self._now)
            self._lock.notify_all()
            self._lock.wait_for(lambda: self.most >= self._crowd, timeout=10.0)
            refuses = self._status != 200 and len(self.at) == 1
        time.sleep(self._seconds)
        with self._lock:
            self._now -= 1
        if refuses:
            return Answer("", self._status, (("Retry-After", self._after),) if self._after else ())
        return Answer("<p>page</p>")

    @property
    def gaps(self) -> list[float]:
        """Seconds between two requests, without the first: its connection took a while longer to open."""
        return [after - before for before, after in pairwise(self.at)][1:]


def crawl(folder: Path, timed: SlowSite, settings: str, *, pages: int, spider: str = SPIDER) -> str:
    """The log of a crawl of so many pages."""
    with timed.site as site:
        log = Project(folder, spider, settings=settings).crawl("theirs", base=site.base, pages=str(pages))
    assert len(timed.at) >= pages
    return log


def test_as_many_requests_at_once_for_a_host_as_the_project_says(tmp_path: Path) -> None:
    for name, settings, most in (("eight", "", 8), ("three", "CONCURRENT_REQUESTS_PER_DOMAIN = 3", 3)):
        timed = SlowSite(0.05, crowd=most)
        log = crawl(tmp_path / name, timed, settings, pages=24)
        assert timed.most == most
        assert f"follows the project's settings: concurrency {most} for a host, delay 0 s" in log


def test_the_projects_delay_is_kept_once_from_start_to_start(tmp_path: Path) -> None:
    timed = SlowSite(0.05)
    crawl(tmp_path, timed, "DOWNLOAD_DELAY = 0.2\nDOWNLOAD_DELAY_JITTER = 0", pages=8)
    assert min(timed.gaps) > 0.15, "the delay"
    assert sorted(timed.gaps)[len(timed.gaps) // 2] < 0.24, "and nothing on top of it"


def test_the_pace_of_startprojects_template_is_kept(tmp_path: Path) -> None:
    timed = SlowSite(0.0)
    log = crawl(tmp_path, timed, template(), pages=4)
    assert "follows the project's settings: concurrency 1 for a host, delay 1 s" in log
    assert timed.most == 1
    assert min(timed.gaps) > 0.45, "half of the delay, less what a request takes"


@pytest.mark.soak
@pytest.mark.parametrize("settings", ["defaults", "template"])
def test_two_hundred_pages_take_as_long_as_without_the_addon(
    tmp_path: Path, settings: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Medians of five runs. Both crawls of a round run beside each other, each on a site of its own."""
    given = "import random\nrandom.seed(1719)\n" + (template() if settings == "template" else "")
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(5):
        with ExitStack() as stack:
            running: dict[bool, tuple[SlowSite, subprocess.Popen[str]]] = {}
            for addon in took:
                timed = SlowSite(0.3)
                base = stack.enter_context(timed.site).base
                project = Project(tmp_path / f"{number} {addon}", SPIDER, settings=given, addon=addon)
                process = project.start("theirs", base=base, pages="200")
                stack.callback(process.kill)
                running[addon] = timed, process
            for addon, (timed, process) in running.items():
                log = process.communicate(timeout=1200)[1]
                assert process.returncode == 0, log[-4000:]
                assert len(timed.site.paths) == 200
                took[addon].append(timed.at[-1] - timed.at[0])
    with_addon, plain = statistics.median(took[True]), statistics.median(took[False])
    with capsys.disabled():
        ratio = with_addon / plain
        print(f"\n{settings}: {with_addon:.1f} s, without {plain:.1f} s, {ratio:.3f} times; {took}")
    assert with_addon < 1.1 * plain


def test_the_delay_of_a_slot_rules_and_is_not_added_to_anything(tmp_path: Path) -> None:
    timed = SlowSite(0.05)
    slot = 'DOWNLOAD_DELAY = 5\nDOWNLOAD_SLOTS = {"127.0.0.1": {"delay": 0.2, "concurrency": 2, "jitter": 0}}'
    crawl(tmp_path, timed, slot, pages=8)
    assert min(timed.gaps) > 0.15
    assert sorted(timed.gaps)[len(timed.gaps) // 2] < 0.24


def test_auto_throttle_slows_down_and_speeds_up(tmp_path: Path) -> None:
    timed = SlowSite(0.02)
    settings = "AUTOTHROTTLE_ENABLED = True\nAUTOTHROTTLE_START_DELAY = 1\nDOWNLOAD_DELAY_JITTER = 0"
    crawl(tmp_path, timed, settings, pages=12)
    assert timed.at[1] - timed.at[0] > 3 * timed.gaps[-1]


def test_a_request_with_a_slot_of_its_own_does_not_take_its_hosts(tmp_path: Path) -> None:
    timed = SlowSite(0.0, crowd=6)
    spider = SPIDER.replace(
        "return {}", 'self.n = getattr(self, "n", 0) + 1; return {"download_slot": f"proxy {self.n}"}'
    )
    crawl(tmp_path, timed, "CONCURRENT_REQUESTS_PER_DOMAIN = 1", pages=6, spider=spider)
    assert timed.most == 6


def test_no_request_waits_for_the_delay_of_a_slot_that_is_not_its_own(tmp_path: Path) -> None:
    timed = SlowSite(0.0)
    spider = SPIDER.replace(
        "return {}", 'self.n = getattr(self, "n", -1) + 1; return {"download_slot": "own"} if self.n % 2 else {}'
    )
    slots = 'DOWNLOAD_DELAY_JITTER = 0\nDOWNLOAD_DELAY = 2\nDOWNLOAD_SLOTS = {"own": {"delay": 0.1, "jitter": 0}}'
    with timed.site as site:
        Project(tmp_path, spider, settings=slots).crawl("theirs", base=site.base, pages="8")
    own = [at for at, path in zip(timed.at, site.paths, strict=True) if int(path[1:]) % 2]
    assert own[-1] - own[0] < 2.0
    host = [at for at, path in zip(timed.at, site.paths, strict=True) if not int(path[1:]) % 2]
    assert min(after - before for before, after in pairwise(host[1:])) > 1.8


def test_a_retry_after_is_waited_for_and_named_in_the_log(tmp_path: Path) -> None:
    timed = SlowSite(0.0, status=503, after="1")
    log = crawl(tmp_path, timed, "CONCURRENT_REQUESTS_PER_DOMAIN = 1", pages=2)
    assert timed.at[1] - timed.at[0] > 0.9
    assert (
        "gets no request for 1 s because of its Retry-After (WEBFOUNTAIN_RETRY_AFTER=False ignores it; logged once)"
        in log
    )


@pytest.mark.parametrize("setting", ["WEBFOUNTAIN_RETRY_AFTER", "WEBFOUNTAIN_CRAWL_DELAY"])
def test_what_a_site_asks_for_can_be_ignored(tmp_path: Path, setting: str) -> None:
    timed = SlowSite(0.0, robots="User-agent: *\nCrawl-delay: 30\n", status=503, after="30")
    other = {"WEBFOUNTAIN_RETRY_AFTER": "WEBFOUNTAIN_CRAWL_DELAY", "WEBFOUNTAIN_CRAWL_DELAY": "WEBFOUNTAIN_RETRY_AFTER"}
    log = crawl(tmp_path, timed, f"ROBOTSTXT_OBEY = True\n{setting} = False\n{other[setting]} = False", pages=4)
    assert max(timed.gaps) < 20
    assert "is left alone" not in log


def test_a_crawl_delay_of_an_obeyed_robots_txt_is_kept_and_named(tmp_path: Path) -> None:
    timed = SlowSite(0.0, robots="User-agent: *\nCrawl-delay: 0.5\n")
    log = crawl(tmp_path, timed, "ROBOTSTXT_OBEY = True\nCONCURRENT_REQUESTS_PER_DOMAIN = 1", pages=4)
    assert min(timed.gaps) > 0.4
    assert "gets no request for 0.5 s because of its Crawl-delay" in log


def test_the_delay_factor_is_a_setting(tmp_path: Path) -> None:
    timed = SlowSite(0.1)
    crawl(tmp_path, timed, "CONCURRENT_REQUESTS_PER_DOMAIN = 1\nWEBFOUNTAIN_DELAY_FACTOR = 3", pages=3)
    assert min(timed.gaps) > 0.35


def test_a_stop_does_not_wait_for_requests_that_wait_in_a_slot(tmp_path: Path) -> None:
    timed = SlowSite(0.0)
    spider = (
        SPIDER
        + """
        if response.url.endswith("/0"):
            raise scrapy.exceptions.CloseSpider("enough")
"""
    )
    with timed.site as site:
        project = Project(tmp_path, spider, settings="DOWNLOAD_DELAY = 30\nDOWNLOAD_DELAY_JITTER = 0")
        began = time.monotonic()
        log = project.crawl("theirs", base=site.base, pages="5")
    assert time.monotonic() - began < 25
    assert "'finish_reason': 'enough'" in log
    assert site.paths == ["/0"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (None, "Scrapy/"),
        ("", "Scrapy/"),
        ("mine/1.0\r\nX: y", "mine/1.0 X: y"),
        ("größer/1.0", "grÃ¶Ã\x9fer/1.0"),
    ],
)
def test_the_crawl_has_a_name_for_robots_txt_whatever_user_agent_is(given: str | None, name: str) -> None:
    assert user_agent_of(Settings({"USER_AGENT": given})).startswith(name)


@pytest.mark.parametrize("agent", ["None", "''", "'größer ' * 200"])
def test_a_project_without_a_user_agent_is_crawled(tmp_path: Path, agent: str) -> None:
    timed = SlowSite(0.0, robots="User-agent: *\nDisallow: /2\n")
    with timed.site as site:
        project = Project(tmp_path, SPIDER, settings=f"ROBOTSTXT_OBEY = True\nUSER_AGENT = {agent}")
        project.crawl("theirs", base=site.base, pages="3")
    assert sorted(site.paths) == ["/0", "/1"]
    if agent == "None":
        assert all("user-agent" not in asked.headers for asked in site.asked if asked.path != "/robots.txt")
