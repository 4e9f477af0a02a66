"""What the ant refuses another project's spider ends in the request's errback, as with Scrapy's own robots.txt."""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from pathlib import Path

CLOSED = "User-agent: *\nDisallow: /closed\n"
REFUSED = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self.base + "/open", errback=self.failed)
            yield scrapy.Request(self.base + "/closed/plain", errback=self.failed, meta={"deep": (1, 2)})
            yield scrapy.Request(self.base + "/closed/object", lambda response: None, errback=self.failed,
                                 meta={"deep": (1, 2)})
            yield scrapy.Request(self.base + "/closed/silent")
        def parse(self, response):
            yield {"url": response.url}
        def failed(self, failure):
            yield {"url": failure.request.url, "error": failure.type.__name__, "said": str(failure.value),
                   "deep": failure.request.meta["deep"] == (1, 2)}
            yield scrapy.Request(self.base + "/instead?" + failure.request.url[-5:])
"""
NOWHERE = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            yield scrapy.Request(self.base + "/open")
            for i in range(40):
                yield scrapy.Request(f"http://nowhere.invalid/{i}", self.parse, errback=self.failed,
                                     cb_kwargs={"n": i}, meta={"dont_retry": True} if i % 2 else {})
        def parse(self, response, n=None):
            yield {"url": response.url, "title": response.css("title::text").get()}
        def failed(self, failure):
            request = failure.request
            yield {"url": request.url, "error": failure.type.__name__, "n": request.cb_kwargs["n"],
                   "retries": request.meta.get("retry_times", 0)}
            yield scrapy.Request(self.base + "/instead")
"""


def echo(asked: ReceivedRequest) -> Answer:
    return Answer(f"<title>{asked.path}</title>")


def test_what_robots_txt_refuses_ends_in_its_errback_and_is_settled_once_as_refused(tmp_path: Path) -> None:
    project = Project(tmp_path, REFUSED, settings="ROBOTSTXT_OBEY = True")
    with Site(echo, robots=CLOSED) as site:
        log = project.crawl("theirs", base=site.base)
        items = {item["url"].removeprefix(site.base): item for item in project.items}
        assert items.keys() == {"/open", "/closed/plain", "/closed/object", "/instead?plain", "/instead?bject"}
        for path in ("/closed/plain", "/closed/object"):
            assert (items[path]["error"], items[path]["deep"]) == ("IgnoreRequest", True)
            assert "robots.txt" in items[path]["said"]
        assert "'ant/settled': 6" in log
        assert "'outcome/refused_by_robots': 3" in log
        assert "'ant/settle_lost': 0" in log
        assert "Traceback" not in log
        assert sorted(site.paths) == ["/instead?bject", "/instead?plain", "/open"]
        project.crawl("theirs", base=site.base)
    assert [path for path in site.paths[3:] if not path.startswith("/instead")] == []
    again = [item["url"] for item in project.items[5:]]
    assert site.base + "/closed/plain" not in again  # what is not plain data is made again by each run


def test_a_kill_in_an_errback_repeats_it_and_many_refused_requests_all_have_theirs(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        import os, signal
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for i in range(3000):
                    yield scrapy.Request(self.base + f"/closed/{i}", errback=self.failed)
            def failed(self, failure):
                self.failures = getattr(self, "failures", 0) + 1
                if self.failures == int(self._kill):
                    os.kill(os.getpid(), signal.SIGKILL)
                yield {"url": failure.request.url}
        """,
        settings='ROBOTSTXT_OBEY = True\nITEM_PIPELINES = {"theirs.pipelines.Written": 1}',
    )
    (tmp_path / "theirs" / "pipelines.py").write_text(
        "class Written:\n"
        "    def process_item(self, item):\n"
        "        with open('written', 'a') as file:\n"
        "            file.write(item['url'] + '\\n')\n"
        "        return item\n"
    )
    with Site(echo, robots=CLOSED) as site:
        killed = project.start("theirs", base=site.base, _kill="500")
        killed.communicate(timeout=240)
        assert killed.returncode == -signal.SIGKILL
        first = set((tmp_path / "written").read_text().split())
        log = project.crawl("theirs", base=site.base, _kill="0")
        every = Counter((tmp_path / "written").read_text().split())
    assert 0 < len(first) <= 499
    assert set(every) == {f"{site.base}/closed/{i}" for i in range(3000)}
    assert "'ant/settle_lost': 0" in log
    assert site.paths == []


@pytest.mark.parametrize("obeys", [True, False])
def test_a_host_without_an_address_ends_in_the_errback_and_does_not_keep_the_crawl(tmp_path: Path, obeys: bool) -> None:
    settings = f"ROBOTSTXT_OBEY = {obeys}\nWEBFOUNTAIN_MAX_SECONDS = 200"
    project = Project(tmp_path, NOWHERE, settings=settings)
    with Site(echo) as site:
        log = project.crawl("theirs", base=site.base)
        items = {item["url"]: item for item in project.items}
        assert len(project.items) == len(items) == 42
        for i in range(40):
            dead = items[f"http://nowhere.invalid/{i}"]
            assert (dead["error"], dead["n"]) == ("CannotResolveHostError", i)
            assert dead["retries"] == (0 if i % 2 else 2)
        assert items[site.base + "/instead"]["title"] == "/instead"
        assert "'finish_reason': 'finished'" in log
        # 20 requests were retried twice, each time as a request of its own.
        assert "'outcome/failed': 80" in log
        assert "'outcome/new': 2" in log
        assert "'ant/settled': 82" in log
        assert "'ant/settle_lost': 0" in log
        assert "Traceback" not in log
        project.crawl("theirs", base=site.base)
    assert len(project.items) == 42  # each was asked once, also by the next run


def test_a_request_that_says_dont_obey_robotstxt_is_made_whatever_robots_txt_says(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for said in (True, False):
                    meta = {"dont_obey_robotstxt": said}
                    yield scrapy.Request(self.base + f"/closed/plain/{said}", meta=meta)
                    yield scrapy.Request(self.base + f"/closed/numbered/{said}", meta={**meta, 7: "no text"})
                    yield scrapy.Request(self.base + f"/closed/object/{said}", lambda response: None, meta=meta)
            def parse(self, response):
                pass
        """,
        settings="ROBOTSTXT_OBEY = True",
    )
    with Site(echo, robots=CLOSED) as site:
        log = project.crawl("theirs", base=site.base)
    assert sorted(site.paths) == ["/closed/numbered/True", "/closed/object/True", "/closed/plain/True"]
    assert "'outcome/refused_by_robots': 3" in log
    assert "'outcome/new': 3" in log
