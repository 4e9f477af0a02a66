"""Settings, stats, stores and filters of a Scrapy project mean with the add-on what they mean without it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import Answer, Project, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTING = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self._base + "/start")
        def parse(self, response):
            yield {"url": response.url}
            for n in (1, 2, 2):
                yield response.follow(f"/page/{n}")
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(lambda asked: Answer(f"<title>{asked.path}</title>")) as site:
        yield site


def stat(log: str, name: str) -> int:
    """A number of the stats that Scrapy dumps."""
    found = re.search(rf"'{re.escape(name)}': (\d+)", log)
    return int(found[1]) if found else 0


def test_a_second_run_says_how_many_requests_it_knew_and_a_fresh_one_begins_anew(tmp_path: Path, site: Site) -> None:
    project = Project(tmp_path, LISTING)
    log = project.crawl("theirs", _base=site.base)
    assert "known from an earlier run" not in log
    assert (len(site.paths), stat(log, "dupefilter/filtered")) == (3, 7)  # each page yields three
    log = project.crawl("theirs", _base=site.base)
    assert re.search(r"INFO: Requests known from an earlier run .*: 1. WEBFOUNTAIN_FRESH", log)
    assert "still to be made: 0 of 3" in log
    assert len(site.paths) == 3
    log = project.crawl("theirs", "-s", "WEBFOUNTAIN_FRESH=True", _base=site.base)
    assert Counter(site.paths) == {"/start": 2, "/page/1": 2, "/page/2": 2}
    assert "known from an earlier run" not in log
    project.crawl("theirs", _base=site.base)
    assert len(site.paths) == 6


def test_stats_and_signals_have_scrapys_names_and_its_meaning(tmp_path: Path, site: Site) -> None:
    spider = """
        from scrapy import signals
        class Theirs(scrapy.Spider):
            name = "theirs"
            @classmethod
            def from_crawler(cls, crawler, *args, **kwargs):
                spider = super().from_crawler(crawler, *args, **kwargs)
                crawler.signals.connect(spider.dropped, signals.request_dropped)
                return spider
            def dropped(self, request):
                self.crawler.stats.inc_value("heard/dropped")
            async def start(self):
                for path in ("/a", "/b", "/a", "/c?x=1&y=2", "/c?y=2&x=1"):
                    yield scrapy.Request(self._base + path)
                yield scrapy.Request("data:,x")
                yield scrapy.Request("data:,x")
            def parse(self, response):
                pass
    """
    logs = [
        Project(tmp_path / str(addon), spider, addon=addon).crawl("theirs", _base=site.base) for addon in (True, False)
    ]
    names = [
        "dupefilter/filtered",
        "heard/dropped",
        "scheduler/enqueued",
        "scheduler/dequeued",
        "downloader/request_count",
    ]
    ours, plain = ({name: stat(log, name) for name in names} for log in logs)
    assert ours == plain
    assert ours["dupefilter/filtered"] == 3


def test_what_only_the_store_knew_is_dropped_with_signal_and_stats(tmp_path: Path, site: Site) -> None:
    project = Project(
        tmp_path,
        """
        from scrapy import signals
        class Theirs(scrapy.Spider):
            name = "theirs"
            @classmethod
            def from_crawler(cls, crawler, *args, **kwargs):
                spider = super().from_crawler(crawler, *args, **kwargs)
                crawler.signals.connect(spider.dropped, signals.request_dropped)
                return spider
            def dropped(self, request):
                self.crawler.stats.inc_value(f"heard{request.url[-2:]}/{request.callback.__name__}")
            async def start(self):
                for path in ("/a", "/b", "/c"):
                    yield scrapy.Request(self._base + path, callback=self.parse_page)
            def parse_page(self, response):
                pass
        """,
    )
    first, second = (project.crawl("theirs", _base=site.base) for _ in range(2))
    assert (stat(first, "scheduler/enqueued"), stat(first, "dupefilter/filtered")) == (3, 0)
    assert [stat(second, f"heard/{path}/parse_page") for path in "abc"] == [1, 1, 1]
    assert stat(second, "dupefilter/filtered") == 3
    assert "'scheduler/enqueued': 0" in second
    assert len(site.paths) == 3


def test_a_duplicate_filter_of_the_projects_own_decides_alone(tmp_path: Path, site: Site) -> None:
    project = Project(
        tmp_path,
        """
        from scrapy.dupefilters import BaseDupeFilter
        class ByPath(BaseDupeFilter):
            def __init__(self):
                self.seen = set()
            def request_seen(self, request):
                path = request.url.partition("?")[0]
                return path in self.seen or bool(self.seen.add(path))
            def log(self, request, spider):
                spider.crawler.stats.inc_value("by_path/filtered")
        class Poller(scrapy.Spider):
            name = "poller"
            custom_settings = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}
            async def start(self):
                for _ in range(3):
                    yield scrapy.Request(self._base + "/poll")
            def parse(self, response):
                yield {"url": response.url}
        class Theirs(Poller):
            name = "theirs"
            custom_settings = {"DUPEFILTER_CLASS": ByPath}
            async def start(self):
                for n in range(3):
                    yield scrapy.Request(self._base + f"/path?{n}")
        """,
    )
    project.crawl("poller", _base=site.base)
    assert site.paths == ["/poll"] * 3
    log = project.crawl("theirs", _base=site.base)
    assert stat(log, "by_path/filtered") == 2
    project.crawl("theirs", _base=site.base)  # the filter's memory is its own, as without the add-on
    assert Counter(site.paths) == {"/poll": 3, "/path?0": 2}


def test_files_that_link_to_each_other_are_read_once(tmp_path: Path, site: Site) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.html").write_text(f'<a href="{other}.html">{other}</a>')
    project = Project(
        tmp_path / "project",
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(f"file://{self._folder}/a.html")
            def parse(self, response):
                yield {"url": response.url}
                yield from response.follow_all(css="a")
        """,
    )
    project.crawl("theirs", _folder=str(tmp_path))
    assert len(project.items) == 2


def test_a_spider_has_a_store_for_each_set_of_its_arguments(tmp_path: Path, site: Site) -> None:
    spider = """
        class Theirs(scrapy.Spider):
            name = "theirs"
            x = "none"
            base = "{base}"
            async def start(self):
                yield scrapy.Request(self.base + "/" + self.x)
                yield scrapy.Request(self.base + "/all")
            def parse(self, response):
                pass
    """.replace("{base}", site.base)
    project = Project(tmp_path, spider)
    (tmp_path / "both.py").write_text(
        "from scrapy.crawler import CrawlerProcess\n"
        "from scrapy.utils.project import get_project_settings\n"
        "process = CrawlerProcess(get_project_settings())\n"
        "process.crawl('theirs', x='1')\n"
        "process.crawl('theirs', x='2')\n"
        "process.start()\n"
    )
    done = project.run("both.py")
    assert "Traceback" not in done.stderr
    assert Counter(site.paths) == {"/1": 1, "/2": 1, "/all": 2}
    project.crawl("theirs", x="1", _job="7")  # scrapyd gives each job a name of its own
    project.crawl("theirs")
    assert Counter(site.paths) == {"/1": 1, "/2": 1, "/all": 3, "/none": 1}
    folders = sorted(path.name for path in (tmp_path / ".webfountain").iterdir())
    assert len(folders) == 3
    assert folders[0] == "theirs"
    assert all(re.fullmatch(r"theirs-[0-9a-f]{8}", name) for name in folders[1:])


def test_meta_can_be_copied_into_an_item_written_as_json_and_handed_on(tmp_path: Path, site: Site) -> None:
    project = Project(
        tmp_path,
        """
        import copy, json
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self._base + "/a", meta={"mine": 1})
            def parse(self, response):
                yield {**copy.deepcopy(response.meta), "json": json.dumps(response.meta)}
                if response.url.endswith("/a"):
                    yield response.follow("/b", meta=response.meta)
        """,
    )
    plain = Project(tmp_path / "plain", (tmp_path / "theirs" / "spiders.py").read_text(), addon=False)
    project.crawl("theirs", _base=site.base)
    plain.crawl("theirs", _base=site.base)
    assert [item.keys() for item in project.items] == [item.keys() for item in plain.items]
    assert len(project.items) == 2


@pytest.mark.parametrize("where", ["settings.py", "custom_settings", "-s"])
def test_settings_are_treated_alike_wherever_they_are_given(tmp_path: Path, site: Site, where: str) -> None:
    given = {"DOWNLOAD_DELAY": "0.2", "ROBOTSTXT_OBEY": "True", "SCHEDULER": "scrapy.core.scheduler.Scheduler"}
    given |= {"AUTOTHROTTLE_ENABLED": "True", "AUTOTHROTTLE_START_DELAY": "0.3"}
    given |= {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}
    custom = given if where == "custom_settings" else {}
    project = Project(
        tmp_path,
        LISTING.replace('name = "theirs"', f'name = "theirs"\n        custom_settings = {custom!r}'),
        settings="\n".join(f"{name} = {value!r}" for name, value in given.items()) if where == "settings.py" else "",
    )
    options = [f"-s{name}={value}" for name, value in given.items()] if where == "-s" else []
    log = project.crawl("theirs", *options, _base=site.base)
    assert [asked.path for asked in site.asked].count("/robots.txt") == 1
    assert len(site.paths) == 3
    assert "have no effect: SCHEDULER_MEMORY_QUEUE" in log
    assert stat(log, "ant/settled") == 3
    assert " -> " not in log
    assert float(re.search(r"'elapsed_time_seconds': ([\d.]+)", log)[1]) > 0.4  # type: ignore[index]


def test_another_reactor_is_refused_in_one_line(tmp_path: Path, site: Site) -> None:
    project = Project(tmp_path, LISTING)
    done = project.run("crawl", "theirs", "-s", "TWISTED_REACTOR=twisted.internet.selectreactor.SelectReactor")
    critical = [line for line in done.stderr.splitlines() if "CRITICAL" in line or "ERROR" in line]
    assert done.returncode == 1
    assert len(critical) == 1
    assert "TWISTED_REACTOR" in critical[0]
    assert "Traceback" not in done.stderr


def test_depth_priority_orders_a_site_as_scrapy_means_it(tmp_path: Path, site: Site) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for n in range(3):
                    yield scrapy.Request(self._base + f"/{n}")
            def parse(self, response):
                if response.meta["depth"] < 2:
                    yield response.follow(response.url + "-")
        """,
        settings="DEPTH_PRIORITY = -1\nDOWNLOAD_DELAY = 0.1",
    )
    project.crawl("theirs", _base=site.base)
    deep_first = ["/0", "/0-", "/0--", "/1", "/1-", "/1--", "/2", "/2-", "/2--"]
    # The next one may be leased before what a page yields is known.
    moved = [abs(site.paths.index(path) - place) for place, path in enumerate(deep_first)]
    assert max(moved) <= 3
    assert site.paths.index("/0--") < site.paths.index("/2")
