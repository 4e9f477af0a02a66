"""A seed that redirects: its https or www. form takes its place, all else is refused, and each command says which.

One crawl of as many seeds as there are cases, over real servers; the cases look at what it left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.acceptance.crawls import ROOT, policy
from tests.servers.named import Answer, NamedWeb, certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = (
    "up.test", "apex.test", "back.test", "both.test", "one.test", "path.test", "away.test", "other.test", "loop.test",
    "self.test", "sub.test", "down.test", "deny.test", "three.test", "plain.test", "port.test",
)  # fmt: skip


class Case(NamedTuple):
    """`hops`: where each URL redirects to; `end`: the page that the crawl must hold in the end, or why it does not."""

    seed: str
    hops: dict[str, str]
    end: str


CASES = {
    "http to https": Case("H://up.test/", {"H://up.test/": "S://up.test/"}, "S://up.test/"),
    "apex to www": Case("H://apex.test/", {"H://apex.test/": "H://www.apex.test/"}, "H://www.apex.test/"),
    "www to apex": Case("H://www.back.test/", {"H://www.back.test/": "H://back.test/"}, "H://back.test/"),
    "https, then www": Case(
        "H://both.test/",
        {"H://both.test/": "S://both.test/", "S://both.test/": "S://www.both.test/"},
        "S://www.both.test/",
    ),
    "https and www at once": Case("H://one.test/", {"H://one.test/": "S://www.one.test/"}, "S://www.one.test/"),
    "another path there": Case(
        "H://path.test/", {"H://path.test/": "H://www.path.test/en/start"}, "H://www.path.test/en/start"
    ),
    "within the site": Case("H://plain.test/", {"H://plain.test/": "/home"}, "H://plain.test/home"),
    "another domain": Case("H://away.test/", {"H://away.test/": "H://other.test/"}, "out of scope"),
    "another subdomain": Case("H://sub.test/", {"H://sub.test/": "H://blog.sub.test/"}, "out of scope"),
    "back to http": Case("S://down.test/", {"S://down.test/": "H://down.test/"}, "out of scope"),
    "another port": Case("H://port.test/", {"H://port.test/": "http://port.test:1/"}, "out of scope"),
    "what a pattern denies": Case("H://deny.test/", {"H://deny.test/": "H://www.deny.test/private"}, "denied"),
    "a loop of two": Case(
        "H://loop.test/", {"H://loop.test/": "H://www.loop.test/", "H://www.loop.test/": "H://loop.test/"}, "loop"
    ),
    "a loop of three": Case(
        "H://three.test/",
        {
            "H://three.test/": "H://www.three.test/",
            "H://www.three.test/": "S://www.three.test/",
            "S://www.three.test/": "H://three.test/",
        },
        "loop",
    ),
    "itself": Case("H://self.test/", {"H://self.test/": "H://self.test/"}, "redirect-loop"),
}


class CrawlEnd(NamedTuple):
    """What the crawl of all cases left."""

    folder: Path
    ports: dict[str, int]
    ended: subprocess.CompletedProcess[str]
    report: dict[str, Any]
    pages: dict[str, dict[str, Any]]

    def url(self, written: str) -> str:
        """A URL of a case with its scheme and port."""
        return _real(written, self.ports)


def _real(written: str, ports: dict[str, int]) -> str:
    for short, scheme in (("H://", "http://"), ("S://", "https://")):
        if written.startswith(short):
            host, slash, path = written.removeprefix(short).partition("/")
            return f"{scheme}{host}:{ports[short[0]]}{slash}{path}"
    return written


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "tests.servers.named", json.dumps(NAMES), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WEBFOUNTAIN_STORE": f"rocksdb://{folder / 'store'}"}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrawlEnd]:
    folder = tmp_path_factory.mktemp("redirects")
    hops: dict[str, str] = {}

    def answer(url: str) -> Answer:
        if url.endswith("/robots.txt"):
            return 404, {}, b""
        if url in hops:
            return 301, {"Location": hops[url]}, b""
        return 200, {}, f"<title>{url}</title><p>the page {url}</p><a href='/next'>next</a>".encode()

    hosts = [host for name in NAMES for host in (name, f"*.{name}")]
    with NamedWeb(answer, certificate(folder, hosts, authority=None)) as web:
        ports = {"H": web.http_port, "S": web.https_port}
        for case in CASES.values():
            hops.update({_real(url, ports): _real(to, ports) for url, to in case.hops.items()})
        file = policy(
            folder,
            [_real(case.seed, ports) for case in CASES.values()],
            politeness={"user_agent": "tests/1.0 (+http://example.org/bot)"},
            policies__default={"deny": ["/private"]},
        )
        ended = command(folder, "crawl", str(file), "--until-idle", "--strict", "--report", "report.json")
        assert "Traceback" not in ended.stderr, ended.stderr
        report = json.loads((folder / "report.json").read_text())
        rows = [json.loads(row) for row in command(folder, "pages", "--jsonl").stdout.splitlines()]
        yield CrawlEnd(folder, ports, ended, report, {row["url"]: row for row in rows})


FOLLOWED = [name for name, case in CASES.items() if "://" in case.end]
REFUSED = [name for name in CASES if name not in FOLLOWED]


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_form_that_a_seed_redirects_to_is_crawled_in_its_place(crawled: CrawlEnd, name: str) -> None:
    case = CASES[name]
    end = crawled.url(case.end)
    assert crawled.pages[end]["state"] == "crawled"
    home = end[: end.index("/", 8)]
    assert crawled.pages[f"{home}/next"]["state"] == "crawled", "its links are in scope"
    assert crawled.url(case.seed) not in [each["url"] for each in crawled.report["seeds_without_pages"]]
    moved = f"The seed {crawled.url(case.seed)} redirects to"
    assert (moved in crawled.ended.stderr) == (name != "within the site"), "one line says so"


@pytest.mark.parametrize("name", REFUSED)
def test_any_other_target_of_a_seed_is_refused_and_the_summary_says_why(crawled: CrawlEnd, name: str) -> None:
    case = CASES[name]
    seed = crawled.url(case.seed)
    [found] = [each for each in crawled.report["seeds_without_pages"] if each["url"] == seed]
    assert case.end in found["why"]
    last = crawled.url(list(case.hops.values())[-1])
    assert last not in crawled.pages or crawled.pages[last]["state"] != "crawled"
    if name != "itself":
        assert crawled.pages[seed]["target"] == crawled.url(case.hops[case.seed])


def test_a_seed_without_a_page_makes_the_status_one_where_that_is_asked_for(crawled: CrawlEnd) -> None:
    assert crawled.ended.returncode == 1
    last = crawled.ended.stderr.splitlines()[-1]
    assert last.startswith(f"webfountain: --strict: {len(REFUSED)} seeds gave no page: ")


def test_status_and_explain_say_why_a_seed_has_no_page(crawled: CrawlEnd) -> None:
    status = command(crawled.folder, "status").stdout
    assert f"{len(REFUSED)} seeds gave no page" in status
    away, other = crawled.url("H://away.test/"), crawled.url("H://other.test/")
    explained = command(crawled.folder, "explain", away).stdout
    assert f"redirects to {other}" in explained
    assert "its site is out of scope" in explained
    shown = command(crawled.folder, "pages", "--state", "redirected").stdout
    assert f"{away} -> {other}" in shown
