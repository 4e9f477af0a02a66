"""The command line as a person uses it: real crawls of a generated web, and one clear line for every mistake."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from tests.crawl.pace import slowness
from tests.lab.test_observations import trace
from webfountain import cli
from webfountain.errors import WebfountainError
from webfountain.frontier.inbox.blocks import UrlBlock, change_blocks
from webfountain.frontier.inbox.inboxes import Inbox
from webfountain.lab.demo.process import DemoServer
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 240

POLICY = """
[collection]
name = "{name}"
seeds = {seeds}
[politeness]
min_delay = "1ms"
delay_factor = 0
[network]
allow_private = true
[policies.default]
revisit = {{ min_interval = "1h" }}
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "webfountain", *map(str, arguments)]


def call(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own: what a crawl needs, since a reactor starts once."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command(*arguments), cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


@pytest.fixture(scope="module")
def web() -> Iterator[DemoServer]:
    """Two sites of ten pages each whose time stands still."""
    with DemoServer(seed=3, sites=2, pages=20, period=0, layout="ports") as server:
        yield server


def write_policy(folder: Path, web: DemoServer, *, name: str = "cli") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(POLICY.format(name=name, seeds=json.dumps(web.urls)))
    return path


class CrawledStore:
    """A store that a real crawl filled, and what that crawl printed."""

    def __init__(self, folder: Path, web: DemoServer) -> None:
        self.policy = write_policy(folder, web)
        self.folder = folder / "store"
        self.url = f"rocksdb://{self.folder}"
        self.ended = call(
            "crawl", self.policy, "--store", self.url, "--until-idle", "--report", "report.json", cwd=folder
        )
        assert self.ended.returncode == 0, self.ended.stderr
        self.report: dict[str, Any] = json.loads((folder / "report.json").read_text())
        self.truth = web.truth().pages


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, web: DemoServer) -> CrawledStore:
    return CrawledStore(tmp_path_factory.mktemp("crawled"), web)


def printed(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Standard output of a command that succeeds, run in this process."""
    assert cli.main([str(argument) for argument in arguments]) == 0
    return capfd.readouterr().out


def refused(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit status and the one line of a command that fails."""
    status = cli.main([str(argument) for argument in arguments])
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("webfountain: ")
    return status, line


# ------------------------------------------------------------------ a crawl


def test_a_crawl_until_idle_holds_every_page_exactly_as_the_server_has_it(
    crawled: CrawledStore, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [json.loads(row) for row in printed(capfd, "pages", "--store", crawled.url, "--jsonl").splitlines()]
    held = {row["url"]: row["digest"] for row in rows if row["state"] == "crawled"}
    assert held.items() >= crawled.truth.items()


def test_the_report_has_the_promised_fields_and_its_sums_agree(crawled: CrawledStore) -> None:
    """DESIGN.md section 7, "Outcomes"."""
    promised = set(outcomes := ("new", "changed", "minor", "same", "not_modified", "redirected", "gone", "failed"))
    promised |= {"pages_fetched", "refused_by_robots", "by_status", "links_seen", "links_out_of_scope", "waiting"}
    promised |= {"urls_discovered", "duplicates_by_cache", "duplicates_by_store", "seconds", "cpu_seconds", "sites"}
    promised |= {"startup_seconds", "peak_rss_bytes", "finish_reason", "url_cache_hit_rate"}
    report = crawled.report
    assert promised <= report.keys()
    assert report["finish_reason"] == "idle"
    assert report["pages_fetched"] == sum(report[kind] for kind in outcomes)
    assert report["new"] >= len(crawled.truth)
    asked = report["urls_discovered"] + report["duplicates_by_store"]
    assert report["url_cache_hit_rate"] == pytest.approx(1 - asked / (asked + report["duplicates_by_cache"]))


def test_a_crawl_ends_with_words_that_say_where_the_pages_lie(crawled: CrawledStore) -> None:
    assert "nothing is left to fetch" in crawled.ended.stdout
    assert f"webfountain status --store {crawled.url}" in crawled.ended.stdout
    assert "Traceback" not in crawled.ended.stderr


def test_cat_prints_the_bytes_whose_digest_the_record_has(
    crawled: CrawledStore, capfd: pytest.CaptureFixture[str]
) -> None:
    url, digest = next(iter(crawled.truth.items()))
    body = printed(capfd, "cat", url, "--store", crawled.url)
    assert hashlib.sha1(body.encode()).hexdigest() == digest
    assert printed(capfd, "cat", url, "--store", crawled.url, "--headers").startswith("200\n")
    assert "<" not in printed(capfd, "cat", url, "--store", crawled.url, "--text")
    for part in ("text", "markdown"):
        written = printed(capfd, "cat", url, "--store", crawled.url, "--format", part)
        assert written == printed(capfd, "cat", url, "--store", crawled.url, f"--{part}")
    assert printed(capfd, "cat", url, "--store", crawled.url, "--format", "html").strip() == body.strip()
    document = json.loads(printed(capfd, "cat", url, "--store", crawled.url, "--json"))
    assert document["status"] == 200
    assert document["title"]


def test_status_counts_what_the_crawl_found(crawled: CrawledStore, capfd: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capfd, "status", "--store", crawled.url, "--json"))
    assert document["pages"]["crawled"] == crawled.report["new"]
    assert document["sites"] == 2
    assert 0 < document["freshness"] <= 1
    text = printed(capfd, "status", "--store", crawled.url)
    assert f"{document['known']:,} URLs" in text
    assert document["crawling"] is False
    assert "no crawl is running" in text, "the estimate is of nobody's care"


def test_sites_and_pages_are_tables_for_people(crawled: CrawledStore, capfd: pytest.CaptureFixture[str]) -> None:
    sites = printed(capfd, "sites", "--store", crawled.url).splitlines()
    assert len(sites) == 3
    document = json.loads(printed(capfd, "sites", "--store", crawled.url, "--json"))
    assert [row["site"] for row in document] == [line.split()[0] for line in sites[1:]]
    rows = printed(capfd, "pages", "--store", crawled.url, "--site", document[0]["site"], "--state", "crawled")
    assert len(rows.splitlines()) == 1 + document[0]["pages"]["crawled"]


def test_texts_since_a_time_are_what_came_after_it(crawled: CrawledStore, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(row) for row in printed(capfd, "texts", "--store", crawled.url, "--jsonl").splitlines()]
    texts = {row["url"]: row for row in rows if row["text"] is not None}
    assert texts.keys() >= crawled.truth.keys()
    assert {"url", "verdict", "fetched", "title", "text", "cursor"} == rows[0].keys()
    assert printed(capfd, "texts", "--store", crawled.url, "--jsonl", "--since", "2100-01-01") == ""
    since = printed(capfd, "texts", "--store", crawled.url, "--since", "2020-01-01T00:00").splitlines()
    assert len(since) == 2 + len(texts)
    assert since[-1].startswith("continue with --since ")
    half = rows[len(rows) // 2]["cursor"]
    rest = printed(capfd, "texts", "--store", crawled.url, "--jsonl", "--since", half).splitlines()
    assert [json.loads(row) for row in rest] == rows[len(rows) // 2 + 1 :]


def test_changes_are_reported_once_to_who_goes_on_with_their_cursor(
    crawled: CrawledStore, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [json.loads(row) for row in printed(capfd, "changes", "--store", crawled.url, "--jsonl").splitlines()]
    assert {row["url"] for row in rows} >= crawled.truth.keys()
    assert {row["verdict"] for row in rows} == {"new"}
    assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
    half = len(rows) // 2
    rest = printed(capfd, "changes", "--store", crawled.url, "--jsonl", "--since", rows[half - 1]["cursor"])
    assert [json.loads(row) for row in rest.splitlines()] == rows[half:]
    last = rows[-1]["cursor"]
    assert json.loads(printed(capfd, "changes", "--store", crawled.url, "--jsonl", "--since", last)) == {"cursor": last}
    assert printed(capfd, "texts", "--store", crawled.url, "--jsonl", "--since", last) == ""
    table = printed(capfd, "changes", "--store", crawled.url, "--site", rows[0]["site"]).splitlines()
    assert table[-1] == f"continue with --since {last}"
    assert all(rows[0]["site"] in line for line in table[1:-1])


@pytest.mark.parametrize(
    "listing",
    [("pages", "--jsonl"), ("texts",), ("texts", "--jsonl"), ("changes",), ("sites",), ("status",), ("--help",)],
)
def test_a_closed_pipe_ends_a_listing_quietly(crawled: CrawledStore, listing: tuple[str, ...]) -> None:
    """`webfountain pages | head -1`."""
    process = subprocess.Popen(
        command(*listing),
        cwd=ROOT,
        env={**os.environ, "WEBFOUNTAIN_STORE": crawled.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, complaint = process.communicate(timeout=TIMEOUT_S)
    assert complaint == b""
    assert process.returncode == 0, "the reader had enough"


def test_evolution_reads_a_store_that_was_crawled_once_and_says_so(
    crawled: CrawledStore, capfd: pytest.CaptureFixture[str]
) -> None:
    status, line = refused(capfd, "evolution", "--store", crawled.url)
    assert status == 2
    assert "nothing to analyse" in line


# ------------------------------------------------------- telling a crawl


class Running:
    """A crawl that runs until it is told to end."""

    def __init__(self, folder: Path, web: DemoServer) -> None:
        self.url = f"rocksdb://{folder / 'store'}"
        self.policy = write_policy(folder, web)
        self.folder = folder
        self.process = subprocess.Popen(
            command("crawl", self.policy, "--store", self.url),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_known(self, web: DemoServer) -> None:
        """Until it has crawled all pages."""
        deadline = time.monotonic() + TIMEOUT_S
        while len(self.pages("crawled")) < len(web.truth().pages):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def pages(self, state: Any) -> dict[str, int]:
        """Checks of the pages in a state, by URL, as a reader beside the crawl sees them."""
        try:
            store = open_store(self.url, collection=None, period_s=None, read_only=True)
        except WebfountainError:  # the crawl has not made it yet
            return {}
        try:
            return {record.url: record.checks for _, record in store.pages.records(state=state)}
        finally:
            store.close()

    def end(self, number: int) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out, err


@pytest.fixture
def running(tmp_path: Path, web: DemoServer) -> Iterator[Running]:
    crawl = Running(tmp_path, web)
    try:
        crawl.wait_until_known(web)
        yield crawl
    finally:
        if crawl.process.poll() is None:
            crawl.process.kill()
            crawl.process.communicate()


def test_a_running_crawl_takes_now_and_forget_is_seen_and_ends_well(
    running: Running, web: DemoServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """One crawl, told everything that can be told: `now` beats min_interval, `forget` removes, SIGTERM ends it."""
    url, other = list(web.truth().pages)[:2]
    document = json.loads(printed(capfd, "now", url, "--store", running.url, "--json"))
    assert document == {"urls": [url], "taken": True}
    deadline = time.monotonic() + TIMEOUT_S
    while not running.pages("crawled")[url]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    document = json.loads(printed(capfd, "forget", other, "--store", running.url, "--json"))
    assert document["taken"]
    assert other not in running.pages("crawled")

    second = call("crawl", running.policy, "--store", running.url, cwd=running.folder)
    assert second.returncode == 1
    assert f"held by process {running.process.pid}" in second.stderr
    assert second.stderr.count("\n") == 1

    began = time.monotonic()
    status, out, err = running.end(signal.SIGTERM)
    assert time.monotonic() - began < 10 * slowness()
    assert status == 0
    assert "stopped by a signal" in out
    assert "Traceback" not in err


def test_without_a_crawl_now_waits_and_forget_acts_at_once(
    tmp_path: Path, web: DemoServer, capfd: pytest.CaptureFixture[str]
) -> None:
    crawled = CrawledStore(tmp_path, web)
    url, other = list(crawled.truth)[:2]
    for blocked in (True, False):
        with contextlib.closing(open_store(crawled.url, collection=None, period_s=None)) as store:
            change_blocks(store, UrlBlock(url), blocked=blocked, at=1.0)
        if blocked:
            assert "it is blocked" in refused(capfd, "now", url, "--store", crawled.url)[1]
    assert "waiting for the next crawl" in printed(capfd, "now", url, "--store", crawled.url)
    assert len(Inbox(crawled.folder / "inbox").waiting()) == 1
    assert "is forgotten: 1 page record and " in printed(capfd, "forget", other, "--store", crawled.url)
    assert refused(capfd, "cat", other, "--store", crawled.url)[0] == 2
    site = other.split("/")[2]
    document = json.loads(printed(capfd, "forget", "--site", f"http://{site}", "--store", crawled.url, "--json"))
    assert document["records"] >= 9
    assert document["copies"] >= 9
    assert refused(capfd, "pages", "--site", f"http://{site}", "--store", crawled.url)[0] == 2


def test_a_store_of_another_collection_is_refused(crawled: CrawledStore, web: DemoServer, tmp_path: Path) -> None:
    other = write_policy(tmp_path, web, name="other")
    ended = call("crawl", other, "--store", crawled.url, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("webfountain: ")
    assert "holds the collection 'cli', not 'other'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_demo_compares_its_copy_with_the_truth(tmp_path: Path) -> None:
    ended = call("demo", "--seconds", "4", "--pages", "20", "--sites", "2", "--json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["finish_reason"] == "max_seconds"
    assert document["freshness"][-1]["pages"] >= 20
    assert document["freshness"][-1]["fresh"] > 0.5
    assert (tmp_path / ".webfountain-demo" / "repository").is_dir()


def test_ctrl_c_ends_the_demo_and_its_server_with_the_summary(tmp_path: Path) -> None:
    """A terminal sends it to both processes at once."""
    process = subprocess.Popen(
        command("demo", "--pages", "20", "--sites", "2"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, first + err
    assert "stopped by a signal" in out
    assert "Traceback" not in err


# ------------------------------------------------------------------ mistakes

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no such command": (("crawll",), "No such command 'crawll'"),
    "no such option": (("status", "--stoer", "x"), "--stoer"),
    "no collection": (("crawl",), "Missing argument 'COLLECTION'"),
    "no policy file": (("crawl", "absent.toml"), "absent.toml: there is no such file"),
    "no such setting": (("crawl", "good.toml", "-s", "WEBFOUNTAIN_HANDS=3"), "did you mean WEBFOUNTAIN_HAND"),
    "setting of another type": (("crawl", "good.toml", "-s", "WEBFOUNTAIN_HAND=many"), "WEBFOUNTAIN_HAND: 'many'"),
    "setting without a value": (("crawl", "good.toml", "-s", "LOG_LEVEL"), "-s 'LOG_LEVEL'"),
    "no pages": (("crawl", "good.toml", "--max-pages", "0"), "--max-pages"),
    "report into nowhere": (("crawl", "good.toml", "--report", "absent/r.json"), "--report 'absent/r.json'"),
    "no store": (("status", "--store", "rocksdb://absent"), "there is no folder absent"),
    "store of no kind": (("status", "--store", "sqlite:x"), "--store 'sqlite:x'"),
    "store in memory": (("pages", "--store", "memory:"), "--store 'memory:'"),
    "state of no kind": (("pages", "--state", "fetched"), "'fetched' is not one of"),
    "cursor of no kind": (
        ("changes", "--since", "yesterday", "--store", "rocksdb://absent"),
        "'yesterday' is not a time",
    ),
    "time of no kind": (("texts", "--since", "yesterday", "--store", "rocksdb://absent"), "'yesterday' is not a time"),
    "relative URL": (("cat", "a.html", "--store", "rocksdb://absent"), "absent"),
    "now without a URL": (("now",), "Missing argument"),
    "now with no URL": (("now", "mailto:x"), "'mailto:x' is not an absolute"),
    "forget nothing": (("forget",), "give either a URL or --site"),
    "forget both": (("forget", "http://a.org/", "--site", "http://a.org"), "give either a URL or --site"),
    "forget a site that is a page": (("forget", "--site", "http://a.org/x"), "--site 'http://a.org/x'"),
    "policy file with a broken key": (("policy", "check", "bad.toml"), "bad.toml: "),
    "more sites than pages": (("demo", "--sites", "5", "--pages", "2"), "--sites 5"),
    "demo into a folder in use": (
        ("demo", "--store", "rocksdb://full"),
        "full contains files that the demo did not make",
    ),
    "plan of no file": (("plan", "solve", "absent.toml"), "absent.toml"),
    "plan of no instance": (("plan", "solve", "emt9"), "'emt9' is not one of"),
    "plan of no version": (("plan", "solve", "emt1", "--version", "v9"), "'v9' is not one of"),
    "simulation without a trace": (("simulate", "revisit", "--start", "2020-01-01"), "Missing option '--events'"),
    "evolution of nothing": (("evolution",), "give --events F and --pages F, or --store URL"),
    "evolution of half a trace": (("evolution", "--events", "e.parquet"), "1 --events and 0 --pages"),
    "evolution of no file": (("evolution", "--events", "e.parquet", "--pages", "p.parquet"), "e.parquet: no such file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_one_line_that_names_it_and_status_two(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("all of it")
    good = POLICY.format(name="good", seeds='["http://127.0.0.1:1/"]')
    (tmp_path / "good.toml").write_text(good)
    (tmp_path / "bad.toml").write_text(good.replace("min_delay", "mindelay"))
    arguments, words = WRONG[name]
    status, line = refused(capfd, *arguments)
    assert status == 2
    assert words in line


def test_reading_a_folder_without_a_store_makes_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, line = refused(capfd, "status", "--store", f"rocksdb://{tmp_path}")
    assert status
    assert str(tmp_path) in line
    assert not list(tmp_path.iterdir())


def test_plan_solve_prints_the_promised_document(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """DESIGN.md section 7, "JSON of the analysis commands"."""
    small = ("--buckets", "6", "--periods", "4", "--strategy", "2", "--out", tmp_path / "plan.npz")
    document = json.loads(printed(capfd, "plan", "solve", "emt1", *small, "--json"))
    promised = {"objective", "bound", "gap", "seconds", "capacity_excess", "obsolete_end", "pages_end", "new_end"}
    assert promised | {"crawls_per_bucket"} <= document.keys()
    assert len(document["crawls_per_bucket"]) == 6
    assert (tmp_path / "plan.npz").is_file()
    assert "objective" in printed(capfd, "plan", "solve", "emt1", *small)


def test_simulate_revisit_prints_a_row_for_each_policy(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    events, pages = trace(tmp_path, [(0, 0, "A", None), (1, 1, "A", None), (0, 3.5, "M", 0.5), (0, 6.5, "M", 0.1)])
    given = ("--events", events, "--pages", pages, "--start", "2020-01-03", "--days", "6", "--fetches-per-day", "1")
    document = json.loads(printed(capfd, "simulate", "revisit", *given, "--policies", "uniform,clairvoyant", "--json"))
    assert list(document["policies"]) == ["uniform", "clairvoyant"]
    assert document["pages"] == 3
    rows = printed(capfd, "simulate", "revisit", *given, "--policies", "uniform").splitlines()
    assert rows[-2].split()[0] == "uniform"
    assert rows[-1] == f"no policy can go below {document['bound']:.4f}"


def test_evolution_of_a_trace_is_a_document_a_table_and_figures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    events, pages = trace(tmp_path, [(0, 0, "A", None), (1, 1, "A", None), (0, 3.5, "M", 0.5), (0, 200, "M", 0.1)])
    given = ("evolution", "--events", events, "--pages", pages)
    document = json.loads(printed(capfd, *given, "--json"))
    assert document["days"] == 200
    assert document["all"]["pages"] == 2
    text = printed(capfd, *given, "--group-by", "tld", "--plots", tmp_path / "figures")
    assert "200 days from 2020-01-01" in text
    assert len(list((tmp_path / "figures").iterdir())) == 8
    two = (*given, "--events", events, "--pages", pages)
    assert "need --start and --days" in refused(capfd, *two)[1]
    assert "4" in printed(capfd, *two, "--start", "2020-01-01", "--days", "100").splitlines()[2]


def test_policy_check_separates_good_from_bad_in_one_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    good = POLICY.format(name="good", seeds='["http://127.0.0.1:1/"]')
    (tmp_path / "good.toml").write_text(good)
    (tmp_path / "bad.toml").write_text(good.replace('"1ms"', '"1 fortnight"'))
    assert cli.main(["policy", "check", "bad.toml", "good.toml"]) == 2
    captured = capfd.readouterr()
    assert "good.toml: fine: collection 'good', 1 seed," in captured.out
    assert "bad.toml: politeness.min_delay" in captured.err
    assert cli.main(["policy", "check", "good.toml", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["collection"]["name"] == "good"


def test_policy_check_warns_of_a_file_that_refuses_its_own_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = POLICY.format(name="none", seeds='["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"]')
    (tmp_path / "none.toml").write_text(text + "deny = ['127']\n")
    assert cli.main(["policy", "check", "none.toml"]) == 0
    captured = capfd.readouterr()
    assert "none.toml: warning: its rules refuse 2 of 2 seeds" in captured.err
    assert "fine" not in captured.out
    assert cli.main(["policy", "check", "none.toml", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["seeds_refused"] == 2


def test_a_second_demo_leaves_a_running_one_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It deleted the store under it."""
    folder = tmp_path / "demo"
    holder = (
        "import sys; from webfountain.store.opening import open_store\n"
        f"store = open_store('rocksdb://{folder}', collection='x', period_s=1.0)\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    run = [sys.executable, "-c", holder]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        (folder / "made-by-webfountain-demo").touch()
        capfd.readouterr()
        assert cli.main(["demo", "--store", f"rocksdb://{folder}"]) == 2
        assert "another demo is running there" in capfd.readouterr().err
        assert (folder / "db" / "CURRENT").exists()
        process.stdin.close()


def test_an_unwritable_store_is_one_line_and_status_one(tmp_path: Path, web: DemoServer) -> None:
    (tmp_path / "file").write_text("")
    ended = call("crawl", write_policy(tmp_path, web), "--store", "rocksdb://file/store", cwd=tmp_path)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "file/store" in ended.stderr


# ---------------------------------------------------------------- the doors


def test_every_command_has_help_that_begins_with_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    listing = printed(capfd, "--help")
    for name, (_, line) in cli.COMMANDS.items():
        assert f"{name} " in listing
        assert line in " ".join(listing.split())
        assert "Usage: webfountain" in printed(capfd, name, "--help")


@pytest.mark.parametrize("arguments", [(), ("plan",), ("policy",)])
def test_without_a_command_the_help_is_printed_as_it_is(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """It was folded into one line."""
    assert cli.main(arguments) == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("Usage: webfountain")
    assert len(lines) > 5


def leaves(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name, each in command.commands.items():
        yield from leaves(each, (*words, name))


@pytest.mark.parametrize(
    ("words", "command"), [each for name in cli.COMMANDS for each in leaves(cli.command_of(name), (name,))]
)
def test_every_command_has_an_example_that_it_understands(words: tuple[str, ...], command: click.Command) -> None:
    assert command.epilog is not None
    said = command.epilog.partition("\n\n")[0].removeprefix("Example: webfountain ").split()
    assert tuple(said[: len(words)]) == words
    context = click.Context(command)
    given, rest, _ = command.make_parser(context).parse_args(said[len(words) :])
    needed = {each.name for each in command.params if each.required}
    assert needed <= {name for name, value in given.items() if value}
    assert not rest
    shown = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    assert [each.opts for each in shown if not each.help] == []


def test_help_names_files_that_exist(capfd: pytest.CaptureFixture[str]) -> None:
    texts = [printed(capfd, "--help"), *(printed(capfd, name, "--help") for name in cli.COMMANDS)]
    named = {file for text in texts for file in re.findall(r"[\w.-]+\.toml", text)}
    assert "mine.toml" in named, "a file that the reader writes"
    assert all(list(ROOT.glob(f"[pw]*/**/{file}")) for file in named - {"mine.toml"}), "in policies or the package"


def test_a_crawl_imports_nothing_for_what_it_does_not_use(tmp_path: Path) -> None:
    """Scrapy imports what a setting names, also where it is set to None: aiohttp and tldextract, a fifth of a start."""
    (tmp_path / "c.toml").write_text(
        '[collection]\nname = "c"\nseeds = ["http://127.0.0.1:9/"]\n[network]\nallow_private = true\n'
    )
    code = (
        "import sys; from webfountain.cli import main; "
        "main(['crawl', 'c.toml', '--max-seconds', '0.1', '--json', '-s', 'WEBFOUNTAIN_STORE=rocksdb://store']); "
        "print(); print(*sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    modules = set(ended.stdout.splitlines()[-1].split())
    assert "webfountain.crawl.scheduler" in modules, ended.stderr
    assert not modules & {
        "aiohttp",
        "tldextract",
        "requests",
        "scipy",
        "pyarrow",
        "rich",
        "redis",
        "duckdb",
    }


def test_reading_needs_neither_scrapy_nor_numpy() -> None:
    """`status` must answer at once: what it imports is what it costs."""
    code = (
        "import sys; from webfountain.cli import main; main(['status', '--store', 'rocksdb://x']); print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    modules = set(ended.stdout.split())
    assert not modules & {"scrapy", "twisted", "numpy", "scipy", "pyarrow", "rich"}
