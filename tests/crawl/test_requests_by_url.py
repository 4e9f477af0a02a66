"""One URL of a project's spider asked again, or forgotten, from outside."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site
from webfountain.cli import main

if TYPE_CHECKING:
    from pathlib import Path

SPIDER = """
class Theirs(scrapy.Spider):
    name = "theirs"
    async def start(self):
        for n in range(5):
            yield scrapy.Request(self._base + f"/{n}", self.parse_page, cb_kwargs={"n": n}, dont_filter=n == 4)
            yield scrapy.FormRequest(self._base + f"/{n}", self.parse_page, formdata={"n": str(n)}, cb_kwargs={"n": -n})
    def parse(self, response):
        yield {"other": response.url}
    def parse_page(self, response, n):
        yield {"n": n}
"""


def echo(asked: ReceivedRequest) -> Answer:
    """A page."""
    return Answer(f"<p>{asked.path}</p>")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"rocksdb://{tmp_path}/project/.webfountain/theirs"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", SPIDER)


def test_now_makes_every_request_of_a_url_again_with_its_callback(project: Project, store: str) -> None:
    with Site(echo) as site:
        project.crawl("theirs", _base=site.base)
        before = len(site.paths)
        assert main(["now", site.base + "/3", "--store", store]) == 0
        project.crawl("theirs", _base=site.base)
        again = Counter(site.paths[before:])
        assert again["/3"] == 2, "GET and POST"
        assert set(again) == {"/3", "/4"}, "and the start request that says dont_filter"
    assert Counter(item["n"] for item in project.items)[3] == 2
    assert Counter(item["n"] for item in project.items)[-3] == 2


def test_now_of_what_no_spider_has_yielded_is_asked_as_a_start_url(project: Project, store: str) -> None:
    with Site(echo) as site:
        project.crawl("theirs", _base=site.base)
        assert main(["now", site.base + "/new", "--store", store]) == 0
        project.crawl("theirs", _base=site.base)
        assert site.paths.count("/new") == 1
        assert {"other": site.base + "/new"} in project.items


def test_forget_removes_every_request_of_a_url(
    project: Project, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Site(echo) as site:
        project.crawl("theirs", _base=site.base)
        assert main(["forget", site.base + "/2", "--store", store]) == 0
        assert "2 page records" in capsys.readouterr().out
        assert main(["forget", site.base + "/unknown", "--store", store]) == 2
        assert f"no request of {site.base}/unknown is known" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "answer"),
    [("explain", "`webfountain pages` shows them"), ("cat", "no copies are kept here")],
)
def test_a_command_about_a_page_names_the_store_of_a_project_as_such(
    project: Project, store: str, capsys: pytest.CaptureFixture[str], command: str, answer: str
) -> None:
    with Site(echo) as site:
        project.crawl("theirs", _base=site.base)
    assert main([command, site.base + "/2", "--store", store]) == 2
    assert answer in capsys.readouterr().err


def test_the_folder_of_several_spiders_is_distinguished_from_a_store(
    project: Project, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Site(echo) as site:
        project.crawl("theirs", _base=site.base)
        assert main(["now", site.base + "/2", "--store", store.removesuffix("/theirs")]) == 2
    assert "contains one store for each spider; give --store rocksdb://" in capsys.readouterr().err
