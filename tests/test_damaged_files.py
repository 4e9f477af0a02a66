"""Every kind of file that a crawl keeps beside its store's own, damaged: said, mended or gone on without."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.duplicates.copied_sites import page, text
from tests.frontier.drive import Answer, Drive, collection_of
from tests.ranking.rankers import WithShards
from tests.ranking.test_damage import damage
from webfountain import cli
from webfountain.clock import ManualClock
from webfountain.duplicates.index import DuplicateIndex, sketch_key
from webfountain.frontier.inbox.inboxes import FOLDER, Inbox
from webfountain.frontier.inbox.notes import NowNote
from webfountain.ranking.link_files import LogFiles
from webfountain.ranking.link_importance import live_importance
from webfountain.repository.repository import Repository
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import Fetch

A = "http://a.example"
PAGES = 10
TURNS = 20
REST = '[duplicates]\ndetect = true\n[ranking]\nevery = "5s"\n[policies.default.score]\npagerank = 1.0\n'


def answer(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.1
    number = int(fetch.url.rpartition("/")[2] or 0)
    links = [f"{A}/{other}" for other in range(PAGES)]
    version = 100 * int(at // 43_200)
    return 200, {"content-type": "text/html"}, page(text(number % 8 + version, words=60), *links).encode(), 0.1


def crawl(folder: Path, *, at: float, seconds: float = 7200.0, is_killed: bool = False) -> None:
    """A crawl with everything on; a killed one leaves its journal, and its register open."""
    store = open_store(f"rocksdb://{folder}", collection="test", period_s=86_400.0)
    clock = ManualClock(at)
    collection = collection_of([f"{A}/"], rest=REST)
    repository = Repository(folder / "repository", clock=clock, given_out=max(store.pages.copies(), default=0))
    drive = Drive(
        collection,
        answer,
        store=store,
        repository=repository,
        clock=clock,
        importance=live_importance(collection, folder, writer="ant", at=at, ranker=WithShards()),
        duplicates=DuplicateIndex(folder / "repository" / "duplicates", key=sketch_key(store.board)),
    )
    drive.run(seconds=seconds)
    left = {}
    if is_killed:
        journal = next((folder / "link-journal").iterdir())
        left = {path: path.read_bytes() for path in (journal, folder / "links" / "written" / f"{journal.stem}.txt")}
    drive.frontier.close()
    for path, content in left.items():
        path.write_bytes(content)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl's folder, with a note that waits."""
    folder = tmp_path_factory.mktemp("crawl") / "store"
    crawl(folder, at=1_000_000.0)
    crawl(folder, at=1_200_000.0, seconds=60.0, is_killed=True)
    Inbox(folder / FOLDER).put(NowNote((f"{A}/3",)))
    return folder


def files_of(folder: Path) -> list[Path]:
    """One file of each kind, but for the store's own."""
    kinds: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).parts[0] != "db":
            kinds["".join(each for each in str(path.relative_to(folder)) if not each.isdigit())[:32]] = path
    return sorted(path.relative_to(folder) for path in kinds.values())


def is_unused(folder: Path, file: str) -> bool:
    """Whether the log needs a file no longer: an older shard, or a segment or register whose rows are in the shards."""
    files = LogFiles(str(folder / "links"))
    manifest = files.manifest()
    name = file.removeprefix("links/")
    if name.startswith("written/"):
        return not any(Path(name).stem in each for each in files.segments(manifest))
    return name.startswith(("shards/", "segments/")) and name not in (
        *manifest.rows,
        *manifest.names,
        *files.segments(manifest),
    )


def kind_of(turn: int) -> str:
    """What is done to a file. Of twenty turns two need no draw; the others draw anew what is damaged."""
    turn %= TURNS
    return ("emptied", "deleted")[turn] if turn < 2 else ("cut", "flipped", "garbage")[turn % 3]


def copies(folder: Path, into: Path, seed: int, every: int) -> Iterator[tuple[Path, str]]:
    """One in `every` of the files damaged, each in a copy of the folder; other seeds damage them otherwise."""
    for number, file in list(enumerate(files_of(folder)))[seed % every :: every]:
        kind = kind_of(number + seed)
        copy = into / f"{seed}-{number}"
        shutil.copytree(folder, copy)
        damage(copy / file, kind, random.Random(f"{seed} {file}"))
        yield copy, f"{file} {kind}"
        shutil.rmtree(copy)


def checked(capfd: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    status = cli.main(["check", "--store", f"rocksdb://{folder}", "--json", *more])
    said = capfd.readouterr()
    assert "Traceback" not in said.err
    found: dict[str, Any] = json.loads(said.out)
    return status, found


def test_a_crawl_with_everything_on_is_whole(kept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, found = checked(capfd, kept)
    assert (status, found["derived"]) == (0, {"present": ["link log", "scores", "duplicates"], "damaged": []})
    assert cli.main(["check", "--store", f"rocksdb://{kept}"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "derived whole: link log, scores, duplicates"
    kinds = " ".join(map(str, files_of(kept)))
    for each in ("links/segments", "links/shards", "link-journal", "scores/EPOCH", "duplicates/records", FOLDER):
        assert each in kinds, kinds


@pytest.mark.parametrize(("seeds", "every"), [(range(1), 12), pytest.param(range(TURNS), 1, marks=pytest.mark.soak)])
def test_damage_is_reported_repaired_and_survived(
    kept: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], seeds: range, every: int
) -> None:
    """Status 0 or 1, a repair makes it whole, and so does a crawl that goes on without one."""
    for seed in seeds:
        for copy, what in copies(kept, tmp_path, seed, every):
            status, found = checked(capfd, copy)
            assert status == (0 if found["whole"] else 1), what
            if what.endswith("deleted") and what.startswith(("links/", "link-journal/")):
                assert found["derived"]["damaged"] or "LOCK" in what or is_unused(kept, what.split()[0]), what
            assert all("\n" not in line and len(line) < 500 for line in found["derived"]["damaged"]), what
            repaired = copy.with_name(copy.name + "-repaired")
            shutil.copytree(copy, repaired)
            assert checked(capfd, repaired, "--repair")[0] == 0, what
            assert not checked(capfd, repaired)[1]["derived"]["damaged"], what
            crawl(repaired, at=2e9, seconds=50_000.0)
            assert checked(capfd, repaired)[0] == 0, what
            shutil.rmtree(repaired)
            crawl(copy, at=2e9, seconds=50_000.0)
            found = checked(capfd, copy)[1]
            assert not found["derived"]["damaged"], (what, found)
            capfd.readouterr()
