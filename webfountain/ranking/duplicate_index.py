"""An index on disk of the pages that others may repeat: what is this page a duplicate of?

Each page that is a duplicate of none, a *representative*, has a record (fingerprint, digest, sketch, the URL that it
calls canonical) in one file and its URL in another, both written before the page is settled, so that nothing is lost
when the process is killed. A page that changes keeps its number and its place. Its keys (one for each band of its
sketch, one for its digest, one for itself) wait in a dict and go, some ten thousand pages at a time, into sorted
*runs*, which are mapped into memory and merged beside the crawl, so that there are few. `INDEX` names the runs in
force and the records whose keys are in them; it is replaced in one step. What is behind it, or written over since,
is read again at opening, and where `INDEX` or a run is lost all of them are made anew from the records. `FORM` names
the kind of the sketches: where it is another than ours the index is begun anew, for they compare with none of ours.

Of a crawl by many ants each writes an index of its own and looks pages up in those of the others, too, which lie beside
it: runs as they are, of what is behind them the keys in small sorted arrays, made as it comes. Nobody waits for
anybody: what another writes in the same moment is seen at the next look, and what it wrote over, or what became of its
site since, is for the caller to find out by the store (`Match.digest`).
"""

from __future__ import annotations

__all__ = ["DuplicateIndex", "IndexedPage", "Match", "Probe", "digest_number"]

import errno
import fcntl
import logging
import os
import struct
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from webfountain.core.resemblance import (
    BANDS,
    SKETCH_BYTES,
    band_keys,
    mixed,
    sketch_form,
    sketch_resemblance,
)
from webfountain.errors import RepositoryError
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]
    Numbers = npt.NDArray[np.uint32]

logger = logging.getLogger(__name__)

PAGES_A_RUN: Final = 10_000
_CANDIDATES: Final = 16
"""Pages of one key that are looked at: representatives resemble each other little, so there are few."""
_RATIO: Final = 4
"""A run is merged with the one before while that is less than so many times as long."""
_MERGED_AT_ONCE: Final = 1 << 18
"""Entries of a merge that are in memory."""
_STALE: Final = 3.0
"""Entries for each one that is valid, of pages that changed, from which on the runs are made anew at opening."""
_RECORD: Final = np.dtype(
    [("page", "<u8"), ("digest", "<u8"), ("canonical", "<u8"), ("url", "<u8"), ("sketch", "u1", (SKETCH_BYTES,))]
)
_record: Final = struct.Struct(f"<QQQQ{SKETCH_BYTES}s")
_again: Final = struct.Struct("<I")
_NO_SKETCH: Final = bytes(SKETCH_BYTES)
_DIGEST, _SELF = np.uint64(0xD1CE57), np.uint64(0x5E1F)
"""What keys of digests and of pages themselves are mixed with, so that they are none of a band."""
_LOOKS: Final = 16
"""Looks at the others' indices after which it is looked whether there are more of them."""
_FILES: Final = ("records", "urls", "again")
_KEYS_A_PAGE: Final = BANDS + 2
_ENTRY_BYTES: Final = 12
_URL_BYTES: Final = 4096


class IndexedPage(msgspec.Struct, frozen=True, gc=False):
    """A page as it is compared: `digest` is hex, `sketch` of `near_duplicates.sketch`, `canonical` as the page says."""

    url: str
    digest: str
    sketch: bytes | None = None
    canonical: str | None = None


class Match(NamedTuple):
    """A representative, and how much a page resembles it: 1.0 where their digests are equal."""

    url: str
    resemblance: float
    is_exact: bool
    names: int
    """Fingerprint of the URL that it calls canonical, 0: none but itself."""
    digest: int
    """The beginning of the digest that its page had when it was kept, as `digest_number` gives it."""


class Probe:
    """A page on its way through the index: its keys, the numbers of the records that share one, its own number.

    `beside`: of other ants' records, by their place among those.
    """

    __slots__ = ("beside", "found", "keys", "number", "page", "record")

    def __init__(self, page: IndexedPage) -> None:
        self.page = page
        self.keys: list[int] = []
        self.found: set[int] = set()
        self.beside: dict[int, set[int]] = {}
        self.number: int | None = None
        self.record = (
            number_of(page.url),
            digest_number(page.digest),
            0 if page.canonical is None else number_of(page.canonical),
        )


class _Index(msgspec.Struct, frozen=True):
    """Runs in force, oldest first, how many records are in them, and how many runs were ever written."""

    runs: tuple[str, ...] = ()
    records: int = 0
    written: int = 0


class _Run(NamedTuple):
    """Sorted keys, and the record of each: views of one mapped file."""

    name: str
    keys: Keys
    numbers: Numbers


class DuplicateIndex:
    """An index in a folder of its own, with one writer. Not for several threads.

    `beside` is the folder of copies of a crawl of many ants, in whose folders the others' indices lie; None: there are
    no others. Memory: some ten thousand pages' keys (15 MB), 1 MB for each of the others, and what one step of a merge
    holds (10 MB), beside what the system keeps of the mapped files: 250 bytes a page on disk and its URL.
    """

    def __init__(self, folder: Path, *, beside: Path | None = None, pages_a_run: int = PAGES_A_RUN) -> None:
        """Raises RepositoryError when the folder cannot be used, or another process has it."""
        self._folder, self._pages_a_run = folder, pages_a_run
        self._beside, self._looks = beside, 0
        self._others: dict[Path, _Other] = {}
        self._fresh: dict[int, int | tuple[int, ...]] = {}
        self._lately: dict[
            int, int | tuple[int, ...]
        ] = {}  # what went into runs since the last look-up, whose pages did not find it there
        self._merger = ThreadPoolExecutor(1, thread_name_prefix="webfountain-merge")
        self._merge: Future[str] | None = None
        self._merging: tuple[_Run, ...] = ()
        self._stop = threading.Event()
        self._runs: list[_Run] = []
        flags = os.O_RDWR | os.O_CREAT
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._records, self._urls, self._again = (os.open(folder / name, flags, 0o600) for name in _FILES)
            fcntl.lockf(self._records, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin_anew_where_old()
            self._urls_end = os.fstat(self._urls).st_size
            self._size = os.fstat(self._records).st_size // _RECORD.itemsize
            os.ftruncate(self._records, self._size * _RECORD.itemsize)  # a record cut in two by a kill
            self._index = self._load()
            self._runs = self._map(self._index)
            self._recover()
        except (OSError, ValueError) as error:
            raise RepositoryError(f"{folder}: the index of duplicates cannot be opened: {error}") from error

    def __len__(self) -> int:
        """Representatives, those among them that are gone since."""
        return self._size

    @property
    def is_alone(self) -> bool:
        """Whether there is no other ant whose index is read."""
        return self._beside is None

    # ----------------------------------------------------------- the question

    def probe(self, pages: Sequence[IndexedPage]) -> list[Probe]:
        """Look pages up, all at once; each is then asked for its `nearest` and, maybe, kept, one after the other.

        Raises
        ------
        RepositoryError
            when the disk refuses. The pages of the batch may be looked up again then.
        """
        self._take_merge()
        self._lately = {}
        probes = [Probe(page) for page in pages]
        drawn = b"".join([page.sketch or _NO_SKETCH for page in pages])
        keys = _keys([probe.record for probe in probes], np.frombuffer(drawn, dtype=np.uint8).reshape(-1, SKETCH_BYTES))
        for place, number in _in_runs(self._runs, keys):
            probes[place // _KEYS_A_PAGE].found.add(number)
        for nth, other in enumerate(self._look_beside()):
            for place, number in _in_runs(other.runs, keys):
                probes[place // _KEYS_A_PAGE].beside.setdefault(nth, set()).add(number)
        for probe, row in zip(probes, keys.tolist(), strict=True):
            probe.keys = row if probe.page.sketch is not None else row[BANDS:]
        return probes

    def nearest(self, probe: Probe, *, least: float = 0.9) -> list[Match]:
        """The representatives that a page resembles by `least` or more, most alike first; exact duplicates before all.

        It is none of itself: when it is a representative its number is noted, and `keep` writes over it.
        """
        found: list[Match] = []
        if numbers := sorted(probe.found.union(*(self._at(key) for key in probe.keys))):
            records = self._read(numbers)
            own = records["page"] == probe.record[0]
            if own.any():
                probe.number = numbers[int(own.argmax())]
            found += _matches(probe, records, least, self._urls)
        others = list(self._others.values())
        for nth, beside in probe.beside.items():
            found += _matches(probe, _read(others[nth].records, sorted(beside)), least, others[nth].urls)
        return sorted(found, key=_most_alike)

    def known(self, urls: Sequence[str]) -> list[tuple[IndexedPage, int] | None]:
        """Each page as it was kept last, and the fingerprint of what it calls canonical (0: none); None: it never was.

        Of its digest the first eight bytes are known.
        """
        names = [number_of(url) for url in urls]
        return [
            None if record is None else (_page_of(url, record), int(record["canonical"]))
            for url, record in zip(urls, self._records_of(names), strict=True)
        ]

    def url_of(self, name: int) -> str | None:
        """The URL with this fingerprint, where its page was kept, by whomever."""
        [record] = self._records_of([name])
        if record is not None:
            return _url(self._urls, int(record["url"]))
        key = mixed(np.array([name], dtype=np.uint64) ^ _SELF)
        for other in self._look_beside():
            for each in _read(other.records, [number for _, number in _in_runs(other.runs, key)]):
                if int(each["page"]) == name:
                    return _url(other.urls, int(each["url"]))
        return None

    # --------------------------------------------------------------- writing

    def keep(self, probe: Probe) -> None:
        """The page is a representative from now on, also after a kill. RepositoryError when the disk refuses."""
        drawn = probe.page.sketch or _NO_SKETCH
        try:
            if probe.number is None:
                number, stale = self._size, set[int]()
                url = probe.page.url.encode() + b"\n"
                _write_at(self._urls, url, self._urls_end)
                _write_at(self._records, _record.pack(*probe.record, self._urls_end, drawn), number * _RECORD.itemsize)
                self._urls_end += len(url)
                self._size += 1
            else:
                number = probe.number
                before = self._read([number])
                stale = set(_keys_of(before)[0])
                os.write(self._again, _again.pack(number))
                _write_at(
                    self._records, _record.pack(*probe.record, int(before["url"][0]), drawn), number * _RECORD.itemsize
                )
        except OSError as error:
            raise self._refused(error) from error
        self._remember([key for key in probe.keys if key not in stale], number)
        if len(self._fresh) >= self._pages_a_run * _KEYS_A_PAGE:
            self._write_run()

    def close(self) -> None:
        """Let go of the files. A merge that goes on is given up, and begun anew another time."""
        self._stop.set()
        self._merger.shutdown(wait=True)
        for file in (self._records, self._urls, self._again):
            os.close(file)
        for other in self._others.values():
            other.close()

    # --------------------------------------------------------------- look-ups

    def _look_beside(self) -> Iterable[_Other]:
        """The indices of the other ants, as they are now. RepositoryError when the disk refuses."""
        if self._beside is None:
            return ()
        try:
            if not self._looks % _LOOKS:
                for folder in sorted({each / "duplicates" for each in self._beside.glob("ant-*")} - {self._folder}):
                    if folder not in self._others:
                        with suppress(FileNotFoundError):  # it is about to be made
                            self._others[folder] = _Other(folder)
            self._looks += 1
            for other in self._others.values():
                other.refresh()
        except OSError as error:
            raise RepositoryError(f"{self._beside}: another ant's duplicates cannot be read: {error}") from error
        return self._others.values()

    def _records_of(self, names: Sequence[int]) -> list[np.void | None]:
        """Records of pages by their fingerprints."""
        if not names:
            return []
        keys = mixed(np.array(names, dtype=np.uint64) ^ _SELF)
        numbers = [set(self._at(key)) for key in keys.tolist()]
        for place, number in _in_runs(self._runs, keys):
            numbers[place].add(number)
        return [
            next((record for record in self._read(sorted(found)) if int(record["page"]) == name), None)
            if found
            else None
            for name, found in zip(names, numbers, strict=True)
        ]

    def _at(self, key: int) -> tuple[int, ...]:
        """Numbers of the records with this key that are in no run yet."""
        found = self._fresh.get(key, ())
        numbers = (found,) if isinstance(found, int) else found
        if self._lately:
            found = self._lately.get(key, ())
            numbers += (found,) if isinstance(found, int) else found
        return numbers

    def _remember(self, keys: Iterable[int], number: int) -> None:
        fresh = self._fresh
        for key in keys:
            others = fresh.get(key)
            if others is None:
                fresh[key] = number
            elif isinstance(others, int):
                fresh[key] = (others, number)
            elif len(others) < _CANDIDATES:
                fresh[key] = (*others, number)

    def _read(self, numbers: Sequence[int]) -> npt.NDArray[np.void]:
        return _read(self._records, numbers)

    # -------------------------------------------------------------------- runs

    def _write_run(self) -> None:
        """Put what is fresh into a run, and begin to merge those before that are not much longer."""
        pairs = [
            (key, number)
            for key, found in self._fresh.items()
            for number in ((found,) if isinstance(found, int) else found)
        ]
        keys = np.array([key for key, _ in pairs], dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        numbers = np.array([number for _, number in pairs], dtype=np.uint32)[order]
        name = f"run-{self._index.written:012d}"
        try:
            with _Replacing(self._folder / name) as file:
                file.write(keys[order].tobytes())
                file.write(numbers.tobytes())
            os.fsync(self._urls)
            os.fsync(self._records)
            self._publish(_Index((*self._index.runs, name), self._size, self._index.written + 1))
            os.ftruncate(self._again, 0)
            os.lseek(self._again, 0, os.SEEK_SET)
        except OSError as error:
            raise self._refused(error) from error
        self._lately, self._fresh = {**self._lately, **self._fresh}, {}
        self._begin_merge()

    def _begin_merge(self) -> None:
        self._take_merge()
        first, length = len(self._runs) - 1, len(self._runs[-1].keys)
        while first and len(self._runs[first - 1].keys) < _RATIO * length:
            first -= 1
            length += len(self._runs[first].keys)
        if self._merge is None and first < len(self._runs) - 1:
            self._merging = tuple(self._runs[first:])
            name = f"run-{self._index.written:012d}"
            self._index = msgspec.structs.replace(self._index, written=self._index.written + 1)
            self._merge = self._merger.submit(_merged, self._folder / name, self._merging, self._stop)

    def _take_merge(self) -> None:
        """Put a merged run in the place of those that it was made of, when it is there."""
        if self._merge is None or not self._merge.done():
            return
        done, self._merge = self._merge, None
        try:
            name = done.result()
            gone = [run.name for run in self._merging]
            at = self._index.runs.index(gone[0])
            runs = (*self._index.runs[:at], name, *self._index.runs[at + len(gone) :])
            self._publish(msgspec.structs.replace(self._index, runs=runs))
            self._merging = ()
            for each in gone:
                (self._folder / each).unlink()
        except OSError as error:
            raise self._refused(error) from error

    def _publish(self, index: _Index) -> None:
        with _Replacing(self._folder / "INDEX") as file:
            file.write(msgspec.json.encode(index))
        self._index = index
        self._runs = self._map(index)

    # ----------------------------------------------------------------- opening

    def _begin_anew_where_old(self) -> None:
        """Empty an index whose sketches another version drew. A kill leaves it empty, or to be emptied again."""
        form, ours = self._folder / "FORM", sketch_form()
        if form.exists() and form.read_text(encoding="ascii", errors="replace") == ours:
            return
        if os.fstat(self._records).st_size:
            logger.warning(
                "%s: the sketches of this index of duplicates are another version's: it is begun anew, and pages are "
                "taken in as they are fetched",
                self._folder,
            )
        (self._folder / "INDEX").unlink(missing_ok=True)
        for file in (self._records, self._urls, self._again):
            os.ftruncate(file, 0)
        with _Replacing(form) as written:
            written.write(ours.encode())

    def _load(self) -> _Index:
        """The index as it was left; an empty one where that is lost, or names what is."""
        try:
            index = msgspec.json.decode((self._folder / "INDEX").read_bytes(), type=_Index)
        except (FileNotFoundError, msgspec.MsgspecError):
            index = _Index()
        sizes = [_size_of(self._folder / name) for name in index.runs]
        whole = all(size > 0 and size % _ENTRY_BYTES == 0 for size in sizes) and index.records <= self._size
        is_stale = sum(sizes) > _STALE * _ENTRY_BYTES * _KEYS_A_PAGE * max(self._size, self._pages_a_run)
        return index if whole and not is_stale else _Index(written=index.written)

    def _recover(self) -> None:
        """Remove what no index names, and remember again what is in no run."""
        for stray in set(self._folder.glob("run-*")) - {self._folder / name for name in self._index.runs}:
            stray.unlink()
        written_over = os.pread(self._again, os.fstat(self._again).st_size, 0)
        numbers = {number for (number,) in _again.iter_unpack(written_over[: len(written_over) // 4 * 4])}
        for number in sorted(number for number in numbers if number < self._index.records):
            self._remember(_keys_of(self._read([number]))[0], number)
        os.lseek(self._again, 0, os.SEEK_END)
        while self._index.records < self._size:
            last = min(self._index.records + self._pages_a_run, self._size)
            behind = range(self._index.records, last)
            for number, keys in zip(behind, _keys_of(self._read(behind)), strict=True):
                self._remember(keys, number)
            if last == self._size:
                break
            size, self._size = self._size, last
            self._write_run()
            self._size = size

    def _map(self, index: _Index) -> list[_Run]:
        return _runs_of(self._folder, index, self._runs)

    def _refused(self, error: OSError) -> RepositoryError:
        return RepositoryError(f"{self._folder}: duplicates cannot be kept: {error}")


class _Other:
    """Another ant's index, as far as it is written; never written here.

    `records` and `urls` are open files, `runs` what is to be searched.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # The one that is made last first.
        self._again, self.urls, self.records = (os.open(folder / name, os.O_RDONLY) for name in reversed(_FILES))
        self.runs: list[_Run] = []
        self._mapped: list[_Run] = []
        self._behind: list[_Run] = []  # of records that are in no run, in memory, the longest first
        self._stamp = (0, 0)
        self._forget()

    def _forget(self) -> None:
        self._size = self._written_over = 0  # records and bytes of `again` that are known
        self._mapped, self._behind, self._stamp = [], [], (0, 0)

    def refresh(self) -> None:
        """See what came since. OSError when the disk refuses."""
        size = os.fstat(self.records).st_size // _RECORD.itemsize
        if size < self._size:  # it was begun anew
            self._forget()
        stamp, changed = self._index_stamp(), os.fstat(self._again).st_size // _again.size
        if stamp != self._stamp:
            self._take_index(stamp)
        if changed < self._written_over:
            self._written_over = 0
        if size > self._size or changed > self._written_over:
            over = os.pread(self._again, (changed - self._written_over) * _again.size, self._written_over * _again.size)
            numbers = {number for (number,) in _again.iter_unpack(over[: len(over) // 4 * 4]) if number < self._size}
            self._add([*sorted(numbers), *range(self._size, size)])
            self._size, self._written_over = size, changed
        self.runs = [*self._mapped, *self._behind]

    def _index_stamp(self) -> tuple[int, int]:
        try:
            found = os.stat(self._folder / "INDEX")
        except FileNotFoundError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns

    def _take_index(self, stamp: tuple[int, int]) -> None:
        """Other runs are in force, where they are still there: else what is mapped goes on to hold them."""
        if not self._is_ours():
            return
        try:
            index = msgspec.json.decode((self._folder / "INDEX").read_bytes(), type=_Index)
            runs = _runs_of(self._folder, index, self._mapped)
        except (FileNotFoundError, ValueError, msgspec.MsgspecError):
            return
        self._mapped, self._behind, self._stamp = runs, [], stamp
        self._size, self._written_over = index.records, 0

    def _add(self, numbers: Sequence[int]) -> None:
        """The keys of records that are in no run."""
        if not self._is_ours():
            return
        for first in range(0, len(numbers), PAGES_A_RUN):
            part = numbers[first : first + PAGES_A_RUN]
            rows = _keys_of(_read(self.records, part))
            keys = np.array([key for row in rows for key in row], dtype=np.uint64)
            behind = _Run("", keys, np.repeat(np.array(part, dtype=np.uint32), [len(row) for row in rows]))
            while self._behind and len(self._behind[-1].keys) < _RATIO * len(behind.keys):
                last = self._behind.pop()
                both = (np.concatenate([last.keys, behind.keys]), np.concatenate([last.numbers, behind.numbers]))
                behind = _Run("", *both)
            order = np.argsort(behind.keys, kind="stable")
            self._behind.append(_Run("", behind.keys[order], behind.numbers[order]))

    def _is_ours(self) -> bool:
        """Whether its sketches compare with ours."""
        form = self._folder / "FORM"
        return form.exists() and form.read_text(encoding="ascii", errors="replace") == sketch_form()

    def close(self) -> None:
        for file in (self.records, self.urls, self._again):
            os.close(file)


class _Replacing:
    """A file to be written that takes the place of the one of its name when it is whole and on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(path.name + ".new")

    def __enter__(self) -> BinaryIO:
        self._file = self._new.open("wb")
        return self._file

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        if kind is None:
            os.replace(self._new, self._path)


def number_of(url: str) -> int:
    """The fingerprint of a canonical URL, as the index names a page."""
    return int.from_bytes(fingerprint(url), "little")


def _page_of(url: str, record: np.void) -> IndexedPage:
    drawn = record["sketch"].tobytes()
    return IndexedPage(url, f"{int(record['digest']):016x}", None if drawn == _NO_SKETCH else drawn)


def digest_number(digest: str) -> int:
    """Of a hex digest what is kept of it: the first eight bytes."""
    return int(digest[:16], 16)


def _most_alike(match: Match) -> tuple[bool, float]:
    return not match.is_exact, -match.resemblance


def _matches(probe: Probe, records: npt.NDArray[np.void], least: float, urls: int) -> list[Match]:
    """Which of some records a page resembles by `least` or more; it is none of itself."""
    page, digest, _ = probe.record
    exact = records["digest"] == digest
    alike = exact.astype(np.float64)
    if probe.page.sketch is not None:
        drawn = np.frombuffer(probe.page.sketch, dtype=np.uint8)
        alike = np.maximum(
            alike, sketch_resemblance(np.broadcast_to(drawn, (len(records), SKETCH_BYTES)), records["sketch"])
        )
    near = np.flatnonzero((alike >= least) & (records["page"] != page))
    return [
        Match(
            _url(urls, int(records["url"][k])),
            float(alike[k]),
            bool(exact[k]),
            int(records["canonical"][k]),
            int(records["digest"][k]),
        )
        for k in near.tolist()
    ]


def _in_runs(runs: Sequence[_Run], keys: Keys) -> Iterator[tuple[int, int]]:
    """(place in the keys, number of a record that has that key) for all that are found."""
    flat = keys.ravel()
    order = np.argsort(flat)  # neighbours in a run are then asked for one after the other
    asked = flat[order]
    for run in runs:
        at = np.searchsorted(run.keys, asked)
        places = np.arange(len(asked))
        for _ in range(_CANDIDATES):
            within = at < len(run.keys)
            at, places = at[within], places[within]
            hit = run.keys[at] == asked[places]
            at, places = at[hit], places[hit]
            if not len(at):
                break
            yield from zip(order[places].tolist(), run.numbers[at].tolist(), strict=True)
            at += 1


def _read(records: int, numbers: Sequence[int]) -> npt.NDArray[np.void]:
    """Some records of an open file."""
    size = _RECORD.itemsize
    return np.frombuffer(b"".join([os.pread(records, size, number * size) for number in numbers]), dtype=_RECORD)


def _url(urls: int, at: int) -> str:
    """The URL that begins at this place of an open file."""
    found = b""
    while b"\n" not in found and (more := os.pread(urls, _URL_BYTES, at + len(found))):
        found += more
    return found.partition(b"\n")[0].decode()


def _runs_of(folder: Path, index: _Index, mapped: Sequence[_Run]) -> list[_Run]:
    """The runs in force, those that are mapped already as they are. FileNotFoundError when one is gone."""
    known = {run.name: run for run in mapped}
    return [known.get(name) or _mapped(folder / name) for name in index.runs]


def _keys(records: Sequence[tuple[int, int, int]], drawn: npt.NDArray[np.uint8]) -> Keys:
    """(n, 10) keys of pages: of their bands, their digest, themselves."""
    names = np.array(records, dtype=np.uint64).reshape(-1, 3)
    return np.hstack([band_keys(drawn), mixed(names[:, 1:2] ^ _DIGEST), mixed(names[:, :1] ^ _SELF)])


def _keys_of(records: npt.NDArray[np.void]) -> list[list[int]]:
    """The keys of records; those without a sketch have none of bands."""
    names = np.stack([records[name] for name in ("page", "digest", "canonical")], axis=1)
    rows = _keys(names, records["sketch"]).tolist()  # type: ignore[arg-type]
    return [row if drawn.any() else row[BANDS:] for row, drawn in zip(rows, records["sketch"], strict=True)]


def _mapped(path: Path) -> _Run:
    entries = path.stat().st_size // _ENTRY_BYTES
    keys = np.memmap(path, dtype="<u8", mode="r", shape=(entries,))
    return _Run(path.name, keys, np.memmap(path, dtype="<u4", mode="r", offset=8 * entries, shape=(entries,)))


def _merged(path: Path, runs: Sequence[_Run], stop: threading.Event) -> str:
    """Write the run that holds the entries of others, a range of keys at a time; its name, also when it was stopped."""
    total = sum(len(run.keys) for run in runs)
    steps = -(-total // _MERGED_AT_ONCE)
    bounds = np.array([(step << 64) // steps for step in range(1, steps)], dtype=np.uint64)
    cuts = [[0, *np.searchsorted(run.keys, bounds).tolist(), len(run.keys)] for run in runs]
    with _Replacing(path) as file:
        at = 0
        for step in range(steps):
            if stop.is_set():
                break
            parts = [slice(cut[step], cut[step + 1]) for cut in cuts]
            keys = np.concatenate([run.keys[part] for run, part in zip(runs, parts, strict=True)])
            order = np.argsort(keys, kind="stable")
            numbers = np.concatenate([run.numbers[part] for run, part in zip(runs, parts, strict=True)])
            file.seek(8 * at)
            file.write(keys[order].tobytes())
            file.seek(8 * total + 4 * at)
            file.write(numbers[order].tobytes())
            at += len(keys)
    return path.name


def _write_at(file: int, data: bytes, at: int) -> None:
    """All of it, or OSError: what is beyond the end that was known is not read."""
    if os.pwrite(file, data, at) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _size_of(path: Path) -> int:
    """Bytes of a file, 0 of one that is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
