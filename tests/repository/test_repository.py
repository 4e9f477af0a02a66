"""The repository as the crawl sees it: write, read, restart, kill, full disk, two writers, a reader beside."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.repository.captures import Crawl, capture, check, records, sha1, url_of
from webfountain.clock import ManualClock
from webfountain.errors import RepositoryError
from webfountain.policy.tables import RepositoryTable
from webfountain.records import Copy
from webfountain.repository.index import beside
from webfountain.repository.repository import Pages, Repository

ROOT = Path(__file__).resolve().parents[2]


def bodies(n: int, size: int = 2000) -> list[bytes]:
    """Bodies that do not compress, all different."""
    return [os.urandom(size) for _ in range(n)]


def only_file(directory: Path) -> Path:
    """The one WARC file of a folder."""
    (path,) = directory.glob("*.warc.gz")
    return path


def test_what_is_written_is_read_by_the_writer_by_a_reader_and_by_warcio(tmp_path: Path) -> None:
    """Each copy gives its own body; a revisit and a fetch without an answer have none."""
    repository = Repository(tmp_path / "repository")
    texts = bodies(3)
    copies = repository.write(
        [
            capture(url_of(0), texts[0]),
            capture(url_of(1), texts[1], digest=sha1(texts[1]), repeats=1.0),
            capture(url_of(2), b"", status=304),
            capture(url_of(3), status=None),
            capture(url_of(4), texts[2]),
        ]
    )
    assert [copy is None for copy in copies] == [False, True, True, True, False]
    reader = Pages(tmp_path / "repository")
    for number, body in ((0, texts[0]), (4, texts[2])):
        place = copies[number]
        assert place is not None
        assert repository.read(place, url_of(number)).body == reader.read(place, url_of(number)).body == body
    kinds = [record.rec_type for record, _ in records(tmp_path / "repository")]
    assert kinds == ["warcinfo", *["response", "request"], *["revisit", "request"] * 2, *["response", "request"]]
    assert check(tmp_path / "repository") == (0, "")
    reader.close()
    repository.close()


def test_names_numbers_and_modes_of_the_files(tmp_path: Path) -> None:
    """The name holds time and number; only the user may read; every file begins with its warcinfo."""
    directory = tmp_path / "deep" / "repository"
    repository = Repository(directory, rotate_bytes=1, clock=ManualClock(1_700_000_000.0), software="mine/1\r\nX: 2")
    for number in range(3):
        repository.write([capture(url_of(number))])
    repository.close()
    names = sorted(path.name for path in directory.glob("*.warc.gz"))
    assert names[:2] == [f"webfountain-20231114221320-0000000{n}.warc.gz" for n in (1, 2)]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    first = [(record, content) for record, content in records(directory) if record.rec_type == "warcinfo"]
    assert [record.rec_headers["WARC-Filename"] for record, _ in first] == names
    assert first[0][1].startswith(b"software: mine/1 X: 2\r\n")


def test_files_rotate_by_size_and_numbers_grow_over_restarts(tmp_path: Path) -> None:
    """A restart goes on with the newest file; the next number is one more."""
    copies: list[tuple[Copy, str]] = []
    for _ in range(2):
        repository = Repository(tmp_path, rotate_bytes=6000)
        for number, body in enumerate(bodies(7)):
            (copy,) = repository.write([capture(url_of(number), body)])
            assert copy is not None
            copies.append((copy, url_of(number)))
        repository.close()
    numbers = [copy.file for copy, _ in copies]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, max(numbers) + 1))
    assert 4 <= max(numbers) <= 7
    assert check(tmp_path) == (0, "")
    assert len({Pages(tmp_path).read(copy, url).body for copy, url in copies}) == 14


def test_a_torn_end_is_cut_at_the_next_start(tmp_path: Path) -> None:
    """At whatever byte the last batch was cut, whole records stay readable and the file passes the check."""
    repository = Repository(tmp_path)
    (kept,) = repository.write([capture(body=b"kept")])
    assert kept is not None
    path = only_file(tmp_path)
    start = path.stat().st_size
    index = beside(path, ".index")
    index_start = index.stat().st_size
    repository.write([capture(url_of(1), b"lost")])
    repository.close()
    whole, rows = path.read_bytes(), index.read_bytes()
    for cut in range(start, len(whole), 61):
        for known in (index_start, index_start + 5, len(rows), 0):
            for later in tmp_path.glob("*-00000002.*"):
                later.unlink()
            path.write_bytes(whole[:cut])
            index.write_bytes(rows[:known])
            again = Repository(tmp_path)
            assert again.read(kept, url_of(0)).body == b"kept"
            (new,) = again.write([capture(url_of(2), b"new")])
            assert new is not None
            assert again.read(new, url_of(2)).body == b"new"
            assert new.file == (1 if cut == start and known <= index_start + 5 else 2), (
                "nothing is written where it was"
            )
            again.close()
            assert check(tmp_path) == (0, "")


def test_garbage_behind_the_last_record_and_a_lost_index_are_mended(tmp_path: Path) -> None:
    """The index can be deleted; after a power cut blocks of zeros may lie where records were."""
    repository = Repository(tmp_path)
    copies = repository.write([capture(url_of(n), body) for n, body in enumerate(bodies(5))])
    repository.close()
    path = only_file(tmp_path)
    before = beside(path, ".index").read_bytes()
    beside(path, ".index").unlink()
    with path.open("ab") as file:
        file.write(bytes(5000))
    again = Repository(tmp_path)
    again.close()
    assert beside(path, ".index").read_bytes() == before
    for later in tmp_path.glob("*-00000002.*"):
        later.unlink()
    last = copies[-1]
    assert last is not None
    data = bytearray(path.read_bytes())
    data[last.offset + 100 :] = bytes(len(data) - last.offset - 100)
    path.write_bytes(data)
    again = Repository(tmp_path)
    assert again.read(copies[3] or last, url_of(3)).status == 200
    with pytest.raises(RepositoryError):
        again.read(last, url_of(4))
    again.close()
    assert check(tmp_path) == (0, "")


def test_a_number_that_pages_still_name_is_not_given_out_again(tmp_path: Path) -> None:
    """The newest file was lost, or an older backup put back."""
    repository = Repository(tmp_path, given_out=7)
    (copy,) = repository.write([capture()])
    assert copy is not None
    assert copy.file == 8
    repository.close()


def test_a_copy_is_held_where_its_file_is_and_is_long_enough(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    first, last = repository.write([capture(), capture(url_of(1), os.urandom(3000))])
    assert first is not None
    assert last is not None
    assert repository.holds(first)
    assert repository.holds(last)
    assert not repository.holds(Copy(9, 0, 10))
    os.truncate(only_file(tmp_path), last.offset + last.length - 1)
    assert repository.holds(first)
    assert not repository.holds(last)
    only_file(tmp_path).unlink()
    assert not repository.holds(first)


def test_an_empty_file_left_by_a_kill_gets_its_warcinfo(tmp_path: Path) -> None:
    """The kill may come between making the file and the first write."""
    (tmp_path / "webfountain-20240101000000-00000007.warc.gz").touch()
    (tmp_path / "webfountain-20230101000000-00000003.index").touch()
    repository = Repository(tmp_path)
    (copy,) = repository.write([capture()])
    assert copy is not None
    assert copy.file == 7
    repository.close()
    assert [record.rec_type for record, _ in records(tmp_path)] == ["warcinfo", "response", "request"]
    assert not list(tmp_path.glob("*-00000003.index"))


def test_two_writers_of_one_folder_are_refused(tmp_path: Path) -> None:
    """The second is told who writes; after a close the folder is free."""
    first = Repository(tmp_path)
    with pytest.raises(RepositoryError, match=f"in use by process {os.getpid()}: stop it"):
        Repository(tmp_path)
    first.close()
    first.close()
    Repository(tmp_path).close()
    with pytest.raises(RepositoryError, match="is closed"):
        first.write([capture()])


@pytest.mark.parametrize(
    ("copy", "words"),
    [
        (Copy(9, 0, 100), "the copy at file 9, offset 0 is not in repository"),
        (Copy(1, 1 << 40, 100), "ends before the copy at offset"),
        (Copy(1, 3, 100), "file 1, offset 3: a record is damaged"),
        (Copy(1, 0, 60), "file 1, offset 0: a record is damaged"),
    ],
)
def test_a_copy_that_is_not_there_or_damaged_is_one_clear_line(tmp_path: Path, copy: Copy, words: str) -> None:
    """Where it should be, and what is wrong with it."""
    repository = Repository(tmp_path)
    repository.write([capture(body=os.urandom(300))])
    with pytest.raises(RepositoryError, match=words) as caught:
        repository.read(copy, url_of(0))
    assert "\n" not in str(caught.value)
    repository.close()


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    """A file stands where the folder should be (root may write anywhere, so no modes here)."""
    (tmp_path / "file").touch()
    with pytest.raises(RepositoryError, match=r"file/repository cannot be opened: Not a directory"):
        Repository(tmp_path / "file" / "repository")


def test_a_reader_of_a_folder_that_is_absent_says_so(tmp_path: Path) -> None:
    """`cat` with a wrong --repository."""
    with pytest.raises(RepositoryError, match=r"nowhere cannot be read: No such file or directory"):
        Pages(tmp_path / "nowhere").read(Copy(1, 0, 1), url_of(0))


def test_a_folder_removed_while_running_is_noticed_before_a_write_is_acknowledged(tmp_path: Path) -> None:
    """The system itself would write on into the deleted file without a word."""
    repository = Repository(tmp_path / "repository")
    repository.write([capture()])
    shutil.rmtree(tmp_path / "repository")
    with pytest.raises(RepositoryError, match=r"warc\.gz cannot be written: No such file or directory"):
        repository.write([capture()])
    repository.close()


def test_a_file_replaced_while_running_is_noticed(tmp_path: Path) -> None:
    """A backup put back has the same name and size, but what is written goes to the old one."""
    repository = Repository(tmp_path)
    path = only_file(tmp_path)
    shutil.copy(path, tmp_path / "backup")
    (tmp_path / "backup").replace(path)
    with pytest.raises(RepositoryError, match="was replaced or changed by another program"):
        repository.write([capture()])
    repository.close()


def test_a_full_disk_keeps_nothing_of_a_batch_and_the_crawl_can_go_on_later(tmp_path: Path) -> None:
    """The batch is cut off again; what was acknowledged before is whole; with room again writing goes on."""
    repository = Repository(tmp_path)
    (kept,) = repository.write([capture(body=b"kept")])
    path = only_file(tmp_path)
    size = path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, hard))
    try:
        with pytest.raises(RepositoryError, match=r"cannot be written: File too large"):
            repository.write([capture(url_of(1), body) for body in bodies(10)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.stat().st_size == size
    assert check(tmp_path) == (0, "")
    (later,) = repository.write([capture(body=b"later")])
    assert kept is not None
    assert later is not None
    assert (repository.read(kept, url_of(0)).body, repository.read(later, url_of(0)).body) == (b"kept", b"later")
    repository.close()


def test_no_room_for_the_next_file_is_an_error_and_the_one_after_it_works(tmp_path: Path) -> None:
    """Rotation closes a file before it makes the next: failing between the two must not wedge the writer."""
    repository = Repository(tmp_path, rotate_bytes=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        for _ in range(2):
            with pytest.raises(RepositoryError, match=r"cannot be written"):
                repository.write([capture()])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (copy,) = repository.write([capture(body=b"at last")])
    assert copy is not None
    assert repository.read(copy, url_of(0)).body == b"at last"
    repository.close()
    assert check(tmp_path) == (0, "")


def test_many_files_are_read_with_few_open(tmp_path: Path) -> None:
    """The reader keeps a bounded number of files open."""
    repository = Repository(tmp_path, rotate_bytes=1)
    copies = [repository.write([capture(url_of(n), str(n).encode())])[0] for n in range(50)]
    repository.close()
    reader = Pages(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    assert [int(reader.read(copy, url_of(n)).body) for n, copy in enumerate(copies) if copy] == list(range(50))
    assert len(os.listdir("/proc/self/fd")) - before <= 32
    reader.close()
    assert len(os.listdir("/proc/self/fd")) == before


WRITES_UNTIL_KILLED = """
import hashlib, json, os, sys
from tests.repository.captures import capture, url_of
from webfountain.repository.repository import Repository
repository = Repository(sys.argv[1], rotate_bytes=300_000)
number = 0
while True:
    batch = [capture(url_of(number + i), os.urandom(3000) * 2) for i in range(5)]
    copies = repository.write(batch)
    for made, copy in zip(batch, copies):
        digest = hashlib.sha1(made.fetched.body).hexdigest()
        os.write(1, json.dumps([made.fetched.fetch.url, copy.file, copy.offset, copy.length, digest]).encode() + b"\\n")
    number += 5
"""


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.soak)])
def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged(tmp_path: Path, kills: int) -> None:
    """SIGKILL again and again in the same folder: each start recovers, every acknowledged copy has its digest."""
    acknowledged: list[tuple[str, int, int, int, str]] = []
    for kill in range(kills):
        command = [sys.executable, "-c", WRITES_UNTIL_KILLED, str(tmp_path / "repository")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            for _ in range(20 + 37 * kill % 400):
                acknowledged.append(json.loads(process.stdout.readline()))
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split(b"\n")[:-1]
            acknowledged += [json.loads(line) for line in rest]
    Repository(tmp_path / "repository").close()
    reader = Pages(tmp_path / "repository")
    for url, file, offset, length, digest in acknowledged:
        assert sha1(reader.read(Copy(file, offset, length), url).body) == digest
    reader.close()
    files = sorted(str(path) for path in (tmp_path / "repository").glob("*.warc.gz"))
    warcio = Path(sys.executable).with_name("warcio")
    assert subprocess.run([str(warcio), "check", *files], check=False, capture_output=True).returncode == 0


def test_the_versions_of_a_page_are_read_from_the_newest_back(tmp_path: Path) -> None:
    """Each copy names the one before it, also over a restart, and after an erasure that moved the older ones."""
    crawl, folder = Crawl(), tmp_path / "kept"
    for number in range(4):
        with closing(Repository(folder, rules=RepositoryTable(keep="all"), rotate_bytes=3000)) as repository:
            texts = [f"version {number}".encode(), os.urandom(2000)]
            new = repository.write(
                [
                    capture(url_of(page), text, at=1.0 + number, before=crawl.copy(url_of(page)))
                    for page, text in enumerate(texts)
                ]
            )
            crawl.settle([url_of(0), url_of(1)], new)
            repository.settled(new)
    with closing(Repository(folder, rules=RepositoryTable(keep="all"))) as repository:
        erased = repository.erase(lambda url: url == url_of(1), crawl.store.pages)
    assert erased.files, "the older versions moved"
    newest, reader = crawl.copy(url_of(0)), Pages(folder)
    assert newest is not None
    versions = [(each.at, each.body) for each in reader.versions(newest, url_of(0))]
    assert versions == [(1.0 + number, f"version {number}".encode()) for number in (3, 2, 1, 0)]
    reader.close()


def test_a_version_can_be_read_in_part(tmp_path: Path) -> None:
    """A list of versions shows titles and sizes, and must not cost more where pages are large."""
    bodies = [os.urandom(50_000), b"small"]
    with closing(Repository(tmp_path, rules=RepositoryTable(keep="all"))) as repository:
        (old,) = repository.write([capture(url_of(0), bodies[0], at=1.0)])
        (new,) = repository.write([capture(url_of(0), bodies[1], at=2.0, before=old)])
    assert new is not None
    found = list(Pages(tmp_path).versions(new, url_of(0), most=2000))
    assert [(each.at, each.status, each.size) for each in found] == [(2.0, 200, 5), (1.0, 200, 50_000)]
    assert found[0].body == bodies[1]
    assert 1000 < len(found[1].body) < 2000
    assert bodies[0].startswith(found[1].body)


def test_versions_end_where_the_older_copies_are_gone(tmp_path: Path) -> None:
    repository = Repository(tmp_path, rotate_bytes=1)
    (old,) = repository.write([capture(url_of(0), b"old", at=1.0)])
    (new,) = repository.write([capture(url_of(0), b"new", at=2.0, before=old)])
    assert old is not None
    assert new is not None
    assert old.file != new.file
    repository.close()
    next(tmp_path.glob(f"*-{old.file:08d}.warc.gz")).unlink()
    assert [each.body for each in Pages(tmp_path).versions(new, url_of(0))] == [b"new"]
