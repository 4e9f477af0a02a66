"""`webfountain check`: a whole store, wrong counts, lost copies, a damaged block, and what --repair mends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.acceptance.crawls import Crawl, policy
from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_copies import HOME, PAGE, Web, copy_of
from tests.store.embedded.test_store import damage
from webfountain import cli
from webfountain.clock import ManualClock
from webfountain.records import Link
from webfountain.report.last_check import CheckResult, last_check
from webfountain.report.store_reading import reading
from webfountain.repository.repository import Repository
from webfountain.store.embedded.disk import WriteBatch, open_writing
from webfountain.store.embedded.keys import COUNTS, META
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import FrontierStore


def opened(folder: Path) -> FrontierStore:
    return open_store(f"rocksdb://{folder}", collection="test", period_s=86_400.0)


def crawl(folder: Path, web: Web, *, at: float = 1_000_000.0, seconds: float = 60.0) -> Drive:
    """A crawl of two pages into a store and its repository, ended in order."""
    store, clock = opened(folder), ManualClock(at)
    repository = Repository(folder / "repository", clock=clock, given_out=max(store.pages.copies(), default=0))
    drive = Drive(collection_of([HOME]), web, store=store, repository=repository, clock=clock)
    drive.run(seconds=seconds)
    drive.frontier.close()
    return drive


def checked(capfd: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    status = cli.main(["check", "--store", f"rocksdb://{folder}", "--json", *more])
    document: dict[str, Any] = json.loads(capfd.readouterr().out)
    return status, document


def kept_result(folder: Path) -> CheckResult:
    """What the service shows of the last check."""
    with reading(f"rocksdb://{folder}") as store:
        found = last_check(store, f"rocksdb://{folder}")
    assert found is not None
    return found


def test_a_store_that_was_crawled_is_whole(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    crawl(tmp_path, Web(validators=True))
    status, found = checked(capfd, tmp_path)
    assert status == 0
    assert (found["whole"], found["pages"], found["copies"], found["lost"]) == (True, 2, 2, [])
    assert cli.main(["check", "--store", f"rocksdb://{tmp_path}"]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == ["counts  whole", "copies  whole: 2 read"]
    kept = kept_result(tmp_path)
    assert (kept.whole, kept.pages, kept.copies, kept.examples) == (True, 2, 2, [])


def test_a_damaged_copy_is_found_and_its_page_fetched_again_after_repair(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file is there and long enough: without the repair a 304 would keep the page without its copy for ever."""
    web = Web(validators=True)
    drive = crawl(tmp_path, web)
    store = opened(tmp_path)
    drive.store = store
    place = copy_of(drive, PAGE)
    store.close()
    (path,) = (tmp_path / "repository").glob("*.warc.gz")
    data = bytearray(path.read_bytes())
    data[place.offset + 40] ^= 255
    path.write_bytes(data)
    status, found = checked(capfd, tmp_path)
    assert (status, [each["url"] for each in found["lost"]]) == (1, [PAGE])
    assert checked(capfd, tmp_path, "--repair")[0] == 0
    web.conditional.clear()
    crawl(tmp_path, web, at=2e9, seconds=600)
    assert web.conditional[0] is False
    assert checked(capfd, tmp_path)[0] == 0


def test_wrong_counts_are_found_and_made_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    crawl(tmp_path, Web(validators=True))
    store = opened(tmp_path)
    right = store.census.statistics(), store.census.buckets(), store.pages.copies(), store.sites.after("", 9)
    store.close()
    disk = open_writing(tmp_path)
    batch = WriteBatch(raw_mode=True)
    batch.delete(COUNTS)
    batch.delete_range(b"B", b"C")
    disk.write(batch)
    disk.close()
    status, found = checked(capfd, tmp_path)
    assert status == 1
    assert ["crawled pages", 0, 2] in found["counts"]
    assert checked(capfd, tmp_path, "--repair")[0] == 0
    assert checked(capfd, tmp_path)[0] == 0
    store = opened(tmp_path)
    assert (store.census.statistics(), store.census.buckets(), store.pages.copies(), store.sites.after("", 9)) == right
    store.close()


def test_a_damaged_block_is_one_line_and_status_1_for_every_command_that_reads_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They listed a part of the pages with status 0."""
    store = opened(tmp_path)
    disk: Any = store
    batch = WriteBatch(raw_mode=True)
    for number in range(3000):
        batch.put(b"P" + bytes(8) + b"%08d" % number, b"\x00" * 100)
    disk.steps.disk.write(batch)
    store.close()
    damage(tmp_path)
    url = f"rocksdb://{tmp_path}"
    for arguments in (["pages", "--jsonl"], ["check", "--json"]):
        assert cli.main([arguments[0], "--store", url, *arguments[1:]]) == 1
        captured = capfd.readouterr()
        assert "Corruption" in captured.err + captured.out
        assert captured.err.count("\n") <= 1


def damaged_everywhere(folder: Path) -> None:
    """A store of 3,000 pages of one site, and a flipped bit in every block of its data."""
    store = opened(folder)
    urls = [f"{HOME}{'x' * 100}/{number}" for number in range(3000)]
    store.queues.discover([Link(url, site_of(url), fingerprint(url)) for url in urls], at=1.0)
    store.close()
    for path in folder.glob("**/*.sst"):
        data = bytearray(path.read_bytes())
        for at in range(100, len(data) * 9 // 10, 1000):
            data[at] ^= 1
        path.write_bytes(data)


def test_texts_of_a_damaged_store_do_not_pass_for_a_whole_list(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damaged_everywhere(tmp_path)
    assert cli.main(["texts", "--store", f"rocksdb://{tmp_path}", "--jsonl"]) == 1
    assert "Corruption" in capfd.readouterr().err


@pytest.mark.parametrize("command", [["status", "--json"], ["forget", "--site", HOME[:-1]], ["sites"]])
def test_a_store_that_is_damaged_everywhere_is_one_line_and_status_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: list[str]
) -> None:
    damaged_everywhere(tmp_path)
    status = cli.main([command[0], "--store", f"rocksdb://{tmp_path}", *command[1:]])
    line, end = capfd.readouterr().err.split("\n")
    assert (status, end) == (1, "")
    assert "orruption" in line


def test_a_crawl_of_a_damaged_store_ends_with_one_line_and_status_1(tmp_path: Path) -> None:
    damaged_everywhere(tmp_path / "store")
    collection = policy(tmp_path, ["http://127.0.0.1:9/"], collection={"name": "test"})
    with Crawl(collection, tmp_path / "store", "--until-idle") as crawl:
        assert crawl.wait(60) == 1
    (line,) = crawl.errors.read_text().splitlines()
    assert "orruption" in line


def test_nothing_is_repaired_under_a_running_crawl(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path).close()
    monkeypatch.setattr("webfountain.commands.check.is_in_use", lambda _: True)
    assert cli.main(["check", "--store", f"rocksdb://{tmp_path}", "--repair"]) == 2
    assert "a crawl has the store open" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("written", "way_on"), [(1, "(--store or WEBFOUNTAIN_STORE) and crawl anew"), (99, "a later webfountain wrote it")]
)
@pytest.mark.parametrize("command", ["check", "status", "crawl"])
def test_an_undamaged_store_of_another_format_is_not_called_damaged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], written: int, way_on: str, command: str
) -> None:
    opened(tmp_path / "s").close()
    disk = open_writing(tmp_path / "s")
    batch = WriteBatch(raw_mode=True)
    batch.put(META, msgspec.msgpack.encode([written, "test", 86_400.0, 900.0]))
    disk.write(batch)
    disk.close()
    if command == "crawl":
        with Crawl(policy(tmp_path, ["http://127.0.0.1:1/"], collection={"name": "test"}), tmp_path / "s") as crawl:
            assert crawl.wait(60) == 2
            line = crawl.errors.read_text().splitlines()[-1]
    else:
        assert cli.main([command, "--store", f"rocksdb://{tmp_path / 's'}"]) == 2
        captured = capfd.readouterr()
        line = captured.err
        assert "damaged" not in captured.out
    assert f"the store has format {written}" in line
    assert way_on in line
