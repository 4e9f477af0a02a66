"""Scrapy's commands that only look at a page leave the spider's frontier alone, and work as without the add-on."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import ROOT, Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPIDER = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        base = "{base}"
        allowed_domains = ["127.0.0.1"]
        async def start(self):
            for i in range(4):
                yield scrapy.Request(f"{{self.base}}/page/{{i}}")
        def parse(self, response):
            if response.url.endswith("/page/1") and self.crawler.settings.getbool("STOP"):
                raise scrapy.exceptions.CloseSpider("stop")
            yield {{"url": response.url}}
"""


def answer(asked: ReceivedRequest) -> Answer:
    if asked.path == "/moved":
        return Answer("", 302, (("Location", "/target"),))
    return Answer(f"<title>{asked.path}</title>")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(answer) as site:
        yield site


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    """A project whose spider was stopped in the midst of its crawl."""
    one_at_a_time = "WEBFOUNTAIN_HAND = 1\nCONCURRENT_REQUESTS_PER_DOMAIN = 1"
    project = Project(tmp_path, SPIDER.format(base=site.base), settings=one_at_a_time)
    project.crawl("theirs", "-s", "STOP=1")
    assert 0 < len(site.paths) < 4
    return project


def test_shell_fetch_and_parse_ask_for_their_page_alone_and_leave_what_waits(project: Project, site: Site) -> None:
    for command in (
        ["fetch", site.base + "/one"],  # the spider is found by its allowed_domains
        ["parse", "--spider=theirs", site.base + "/one"],
        ["shell", "--spider=theirs", "-c", "response.url", site.base + "/one"],
    ):
        before = len(site.paths)
        done = project.run(*command)
        assert done.returncode == 0, done.stderr
        assert site.paths[before:] == ["/one"], command
        assert "Traceback" not in done.stderr
    before = len(site.paths)
    project.crawl("theirs")
    assert len(site.paths) - before == len(set(site.paths[before:])) > 0
    assert {item["url"] for item in project.items} >= {f"{site.base}/page/{i}" for i in (0, 2, 3)}


def test_fetch_of_a_request_returns_in_the_shell_and_no_redirect_is_honoured(project: Project, site: Site) -> None:
    code = f'fetch(scrapy.Request("{site.base}/other")) or response.url'
    done = project.run("shell", "--nolog", "-c", code, site.base + "/one")
    assert done.stdout.split()[-1:] == [site.base + "/other"], done.stderr
    done = project.run("shell", "--nolog", "--no-redirect", "-c", "response.status", site.base + "/moved")
    assert done.stdout.split()[-1:] == ["302"], done.stderr


def test_a_shell_may_be_open_while_the_spider_crawls(project: Project, site: Site) -> None:
    held = "__import__('subprocess').run([__import__('sys').executable, '-m', 'scrapy', 'crawl', 'theirs'], check=True)"
    done = project.run("shell", "--nolog", "--spider=theirs", "-c", held, site.base + "/one")
    assert done.returncode == 0, done.stderr
    assert "returncode=0" in done.stdout


def test_the_shell_works_with_the_settings_of_the_fountain_spider(tmp_path: Path, site: Site) -> None:
    code = f'fetch(scrapy.Request("{site.base}/other")) or response.url'
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "shell", "--nolog", "-c", code, site.base + "/one"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout.split()[-1:] == [site.base + "/other"], done.stderr
    assert list(tmp_path.iterdir()) == []
