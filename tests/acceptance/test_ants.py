"""Many ants on one store: a crawl by several processes, ants that die, hang and wake, a server that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.acceptance.crawls import PATIENT, ROOT, policy
from webfountain.commands.ants import AntProcesses
from webfountain.frontier.cluster.ant_notes import AntNote, ants_of
from webfountain.lab.demo.process import DemoServer, overlaps
from webfountain.repository.repository import Pages
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.lab.demo.server import LoggedVisit
    from webfountain.store.contract import FrontierStore

PAGES = 240
BEAT = "-sWEBFOUNTAIN_HEARTBEAT_SECONDS=1"


class Crawl:
    """``webfountain crawl`` on a store in a folder, as a process; a context manager that kills what is left of it.

    is_patient : whether its ants may take minutes to end
    """

    def __init__(self, collection: Path, folder: Path, *options: str, is_patient: bool = True) -> None:
        self.folder = folder
        self.report_file = folder.with_suffix(".report.json")
        self.errors = folder.with_suffix(".stderr")
        program = ["-c", PATIENT] if is_patient else ["-m", "webfountain"]
        command = [sys.executable, *program, "crawl", str(collection)]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, f"--store=valkey://{folder}", "--json", f"--report={self.report_file}", BEAT, *options],
                cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip

    def wait(self, seconds: float = 300.0) -> dict[str, Any]:
        """The report of a crawl that ended well."""
        assert self.process.wait(seconds) == 0, self.errors.read_text()
        found: dict[str, Any] = json.loads(self.report_file.read_bytes())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def processes(parent: int, word: str) -> list[int]:
    """The children of a process in whose command a word stands."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, command = (entry / "stat").read_text(), (entry / "cmdline").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == parent and word in command:
                found.append(int(entry.name))
    return sorted(found)


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def handles(process: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    caught = Path(f"/proc/{process}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) >> (number - 1) & 1)


def has_written(process: int) -> bool:
    """Whether an ant has begun to write copies of pages: it holds a WARC file open."""
    try:
        return any(".warc" in os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


def until(what: Callable[[], object], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)


def opened(folder: Path) -> closing[FrontierStore]:
    return closing(open_store(f"valkey://{folder}", collection=None, period_s=None))


def crawled(folder: Path) -> int:
    with opened(folder) as store:
        return store.census.statistics().pages["crawled"]


def ants(folder: Path) -> dict[str, AntNote]:
    """The ants that are alive, two of them, or none."""
    with opened(folder) as store:
        assert store.claims is not None
        found = ants_of(store.claims, time.time())
    return found if len(found) == 2 else {}


def pages_asked(visits: list[LoggedVisit]) -> Counter[tuple[str, str]]:
    """How often each page was asked; robots.txt and sitemaps are files."""
    return Counter((one.site, one.path) for one in visits if not one.path.endswith((".txt", ".xml", ".gz")))


@pytest.fixture
def server() -> Iterator[DemoServer]:
    with DemoServer(sites=8, pages=PAGES, period=0, latency=0.01) as server:
        yield server


@pytest.fixture
def collection(server: DemoServer, tmp_path: Path) -> Path:
    return policy(tmp_path, server.urls, politeness={"min_delay": "200ms", "delay_factor": 0})


def test_ants_share_a_crawl_and_one_report_adds_them_up(server: DemoServer, collection: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Crawl(collection, folder, "--ants=2", "--until-idle") as crawl:
        report = crawl.wait()
    asked = pages_asked(server.log())
    assert (report["ants"], report["ants_failed"], report["finish_reason"]) == (2, [], "idle")
    assert report["new"] == report["pages"]["crawled"] == PAGES
    assert report["pages_fetched"] == sum(asked.values())
    assert set(asked.values()) == {1}, "no page was asked twice"
    assert not overlaps(server.log()), "no site was asked twice at once"
    with opened(folder) as store:
        records = [record for _, record in store.pages.records(state="crawled")]
        wrote = {record.copy.repository for record in records if record.copy is not None}
        assert (store.census.statistics().leased, store.census.statistics().active_sites) == (0, 0)
    assert wrote == {1, 2}, "each ant writes files of its own"
    with closing(Pages(folder / "repository")) as copies:
        for record in records:
            assert record.copy is not None
            assert copies.read(record.copy, record.url).status == 200
    cat = [sys.executable, "-m", "webfountain", "cat", records[0].url, f"--store=valkey://{folder}"]
    assert subprocess.run(cat, cwd=ROOT, capture_output=True, check=True).stdout


def test_a_signal_stops_all_ants_and_the_next_start_goes_on_where_they_ended(
    server: DemoServer, collection: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    with Crawl(collection, folder, "--ants=2") as crawl:
        until(lambda: server.stats()["served"] > 60)
        crawl.process.send_signal(signal.SIGINT)
        report = crawl.wait()
    assert report["finish_reason"] == "shutdown"
    with opened(folder) as store:
        assert (store.census.statistics().leased, store.census.statistics().active_sites) == (0, 0)
        assert store.claims is not None
        assert ants_of(store.claims, 0.0) == {}, "each has signed off"
    with Crawl(collection, folder, "--ants=2", "--until-idle") as crawl:
        report = crawl.wait()
    assert report["pages"]["crawled"] == PAGES
    assert set(pages_asked(server.log()).values()) == {1}, "nothing was lost or asked again"


def test_a_signal_ends_a_crawl_though_one_of_its_ants_hangs_and_the_others_end_well(
    server: DemoServer, collection: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    with Crawl(collection, folder, "--ants=2", is_patient=False) as crawl:
        until(lambda: server.stats()["served"] > 60)
        ants = processes(crawl.process.pid, "--repository")
        until(lambda: all(map(has_written, ants)))
        hung = ants[0]
        os.kill(hung, signal.SIGSTOP)
        crawl.process.send_signal(signal.SIGTERM)
        assert crawl.process.wait(240) == 1, "it says that one did not end"
        assert not lives(hung)
        assert f"process {hung}) ended with status -9" in crawl.errors.read_text()
    assert json.loads(crawl.report_file.read_bytes())["finish_reason"] == "shutdown"
    with Crawl(collection, folder, "--ants=2", "--until-idle") as crawl:
        assert crawl.wait()["pages"]["crawled"] == PAGES
    assert not overlaps(server.log())


def test_a_signal_reaches_each_ant_and_the_parent_that_waits_for_the_store(tmp_path: Path) -> None:
    printed: list[str] = []
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with AntProcesses(command, tmp_path, [None, None], on_stop=lambda: printed.append("stopped")) as troop:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in troop.until_ended(60.0):
            pass
        assert not troop.failed(), "none of them had begun"
        with pytest.raises(SystemExit) as ended:
            troop.require_begun()
        assert ended.value.code == 0
    assert printed == ["stopped"]


@pytest.mark.parametrize("child", ["", "valkey", "--repository"], ids=["at once", "with its server", "with its ants"])
def test_a_signal_before_any_ant_has_begun_ends_the_crawl_well_and_leaves_nobody_behind(
    collection: Path, tmp_path: Path, child: str
) -> None:
    with Crawl(collection, tmp_path / "store", "--ants=2") as crawl:
        until(lambda: handles(crawl.process.pid, signal.SIGTERM))
        until(lambda: not child or processes(crawl.process.pid, child))
        children = processes(crawl.process.pid, "")
        crawl.process.send_signal(signal.SIGTERM)
        assert crawl.process.wait(240) == 0, crawl.errors.read_text()
    assert not any(map(lives, children))
    assert not crawl.errors.read_text()


def test_a_killed_crawl_leaves_nobody_behind_and_its_server_comes_back_from_its_file(
    server: DemoServer, collection: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    with Crawl(collection, folder, "--ants=2") as crawl:
        until(lambda: server.stats()["served"] > 60)
        troop = processes(crawl.process.pid, "--repository")
        [old] = processes(crawl.process.pid, "valkey-server")
        crawl.process.kill()
        crawl.process.wait()
    until(lambda: not any(map(lives, troop)))
    assert lives(old), "the server outlives its owner"
    with Crawl(collection, folder, "--ants=2", "--until-idle") as crawl:
        report = crawl.wait()
    assert not lives(old), "and is ended by the next"
    assert report["pages"]["crawled"] == PAGES
    assert max(pages_asked(server.log()).values()) <= 2


def test_sites_of_a_killed_ant_are_taken_over_and_its_copies_are_read(
    server: DemoServer, collection: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    with Crawl(collection, folder, "--ants=2", "--until-idle") as crawl:
        until(lambda: server.stats()["served"] > 5)
        until(lambda: [ant for ant in ants(folder).values() if ant.sites] == list(ants(folder).values()) != [])
        os.kill(processes(crawl.process.pid, "--repository")[0], signal.SIGKILL)
        assert crawl.process.wait(240) == 1, "an ant was lost"
        assert "ended with status -9" in crawl.errors.read_text()
    report = json.loads(crawl.report_file.read_bytes())
    assert (report["finish_reason"], report["pages"]["crawled"]) == ("idle", PAGES)
    assert max(pages_asked(server.log()).values()) <= 2
    assert not overlaps(server.log())
