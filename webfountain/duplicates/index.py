"""An index on disk, in which the duplicate detector looks up pages with similar text.

Each *representative* (a page that repeats no other page) has a record (`page_records`). A page has several keys: for
the bands of its sketch, for its digest and for itself (`key_runs`). The file `FORM` names the format of the sketches.
An index in another format, or with damaged files, is emptied. An index can be rebuilt from the stored copies.

Each ant of a crawl writes its own index, and also reads the indices of other ants (`other_indices`).
"""

from __future__ import annotations

import logging
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from webfountain.core.sketch import BANDS, band_keys, most_resemblance, sketch_form, sketch_rows
from webfountain.duplicates.key_runs import KeyRuns, RecentKeys
from webfountain.duplicates.other_indices import OtherIndices, read_form
from webfountain.duplicates.page_records import (
    KEYS_A_PAGE,
    NO_SKETCH,
    PageNames,
    RecordFiles,
    digest_number,
    keys_of_pages,
    keys_of_records,
    number_of,
    self_keys,
)
from webfountain.errors import RepositoryError
from webfountain.private_files import replaced
from webfountain.store.contract import SKETCH_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from webfountain.store.contract import Board

__all__ = ["DuplicateIndex", "IndexedPage", "Match", "Probe", "sketch_key"]

_BYTES: Final = 8

logger = logging.getLogger(__name__)

PAGES_A_RUN: Final = 10_000
_STALE: Final = 3.0
"""When an index is opened, its runs are rebuilt if they contain more stale entries per valid entry than this."""
_DAMAGED: Final = "this duplicate index is damaged"
_OTHERS: Final = "this duplicate index has the sketches of another version or of another store"


def sketch_key(board: Board) -> int:
    """Return the secret 64-bit key of a store's sketches. The first call chooses the key at random and stores it.

    If the key were known, an author could write a text that has the sketch of another page. All ants use the same key,
    because they read each other's indices.
    """
    return int.from_bytes(board.settle_value(SKETCH_KEY, secrets.token_bytes(_BYTES)), "little")


class IndexedPage(msgspec.Struct, frozen=True, gc=False):
    """A page to compare: its digest in hex, its sketch, and the canonical URL that it declares."""

    url: str
    digest: str
    sketch: bytes | None = None
    canonical: str | None = None
    second_sketch: bytes | None = None
    """Second sketch of a long text, compared but not stored (`core.sketch.sketches`)."""


class Match(NamedTuple):
    """A representative and its resemblance to a page. Equal digests mean a resemblance of 1.0."""

    url: str
    resemblance: float
    is_exact: bool
    names: int
    """Fingerprint of the canonical URL that the representative declares; 0 if it declares none."""
    digest: int
    """First bytes of the representative's digest, as stored (`digest_number`)."""


class Probe:
    """Working data for the look-up of one page.

    `keys` are the keys of the page; `asked` also includes the keys of its second sketch. `found` contains the numbers
    of this index's records that share a key with the page. `beside` contains the numbers of such records for each other
    ant's index. `number` is the record number of the page itself.
    """

    __slots__ = ("asked", "beside", "found", "keys", "names", "number", "page")

    def __init__(self, page: IndexedPage) -> None:
        self.page = page
        self.keys: list[int] = []
        self.asked: list[int] = []
        self.found: set[int] = set()
        self.beside: dict[int, set[int]] = {}
        self.number: int | None = None
        canonical = 0 if page.canonical is None else number_of(page.canonical)
        self.names = PageNames(number_of(page.url), digest_number(page.digest), canonical)


class DuplicateIndex:
    """An index in its own folder, with one writer. Not thread-safe.

    The index takes about 25 MB of memory, and 1 MB more for each other ant, not counting mapped files. On disk, a page
    takes 250 bytes plus its URL.
    """

    def __init__(
        self, folder: Path, *, beside: Path | None = None, pages_a_run: int = PAGES_A_RUN, key: int = 0
    ) -> None:
        """Open the index of a folder.

        Parameters
        ----------
        beside : folder of copies of a crawl with many ants, which contains the indices of the others; None: there is
            one ant
        key : key of the sketches

        Raises
        ------
        RepositoryError
            if the folder cannot be used, or another process uses it.
        """
        self._folder, self._pages_a_run = folder, pages_a_run
        self.key = key
        self._form = sketch_form(key)
        self._recent = RecentKeys()
        self._runs = KeyRuns(folder)
        self._others = OtherIndices(beside, folder, self._form)
        self._is_damaged = False
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._files = RecordFiles.to_write(folder)
            if read_form(folder) != self._form:
                self._empty(_OTHERS)
            elif not self._files.samples_are_sound():
                self._empty(_DAMAGED)
            self._files.cut()
            self._size = len(self._files)
            most = _STALE * KEYS_A_PAGE * max(self._size, pages_a_run)
            self._runs.load(records=self._size, most_entries=most)
            self._read_recent_keys()
        except (OSError, ValueError) as error:
            raise RepositoryError(f"{folder}: the duplicate index cannot be opened: {error}") from error

    def __len__(self) -> int:
        """Return the number of representatives that were stored."""
        return self._size

    @property
    def is_alone(self) -> bool:
        """Return whether this is the only ant."""
        return self._others.is_absent

    # ------------------------------------------------------------ look-up

    def probe(self, pages: Sequence[IndexedPage]) -> list[Probe]:
        """Look up all pages of a batch. After `probe`, call `nearest` for each page in turn, and then `keep` if the
        page repeats no other page.

        Raises
        ------
        RepositoryError
            if the disk reports an error. The pages of the batch may be looked up again after that.
        """
        with self._disk():
            if self._is_damaged:
                self._begin_anew()
            if self._runs.are_cut():
                self._build_runs_again()
            self._runs.take_merge()
        self._recent.begin()
        probes = [Probe(page) for page in pages]
        keys = keys_of_pages(
            [probe.names for probe in probes], sketch_rows([page.sketch or NO_SKETCH for page in pages])
        )
        for probe, row in zip(probes, keys.tolist(), strict=True):
            probe.keys = probe.asked = row if probe.page.sketch is not None else row[BANDS:]
        owners = [probe for probe in probes for _ in range(KEYS_A_PAGE)]
        if doubled := [probe for probe in probes if probe.page.second_sketch is not None]:
            more = band_keys(sketch_rows([probe.page.second_sketch or NO_SKETCH for probe in doubled]))
            for probe, row in zip(doubled, more.tolist(), strict=True):
                probe.asked = probe.keys + row
            keys = np.concatenate([keys.ravel(), more.ravel()])
            owners += [probe for probe in doubled for _ in range(BANDS)]
        for place, number in self._runs.find(keys):
            owners[place].found.add(number)
        for nth, other in enumerate(self._others.refresh()):
            for place, number in other.find(keys):
                owners[place].beside.setdefault(nth, set()).add(number)
        return probes

    def nearest(self, probe: Probe, *, least: float = 0.9) -> list[Match]:
        """Return the other representatives whose resemblance to a page is at least `least`, most similar first.

        If the page already has a record, a later call of `keep` replaces the record.
        """
        found: list[Match] = []
        if numbers := self._there(probe.found | self._recent.find(probe.asked)):
            records = self._files.read(numbers)
            own = records["page"] == probe.names.page
            if own.any():
                probe.number = numbers[int(own.argmax())]
            found, damaged = _matches(probe, records, least, self._files)
            self._is_damaged |= damaged > 0
        if probe.beside:
            others = self._others.known()
            for nth, beside in probe.beside.items():
                files = others[nth].files
                found += _matches(probe, files.read(sorted(beside)), least, files)[0]
        return sorted(found, key=lambda match: (not match.is_exact, -match.resemblance))

    def known(self, urls: Sequence[str]) -> list[tuple[IndexedPage, int] | None]:
        """Return the stored page of each URL and the fingerprint of its canonical URL (0 for none), or None for an
        unknown URL.

        The stored page has only the first eight bytes of the digest.
        """
        found = self._records_of([number_of(url) for url in urls])
        return [
            None if record is None else (_page_of(url, record), int(record["canonical"]))
            for url, record in zip(urls, found, strict=True)
        ]

    def url_of(self, name: int) -> str | None:
        """Return the URL with this fingerprint if an ant has stored the page, else None."""
        [record] = self._records_of([name])
        if record is not None:
            return self._files.url(record) if self._files.is_sound(record) else None
        key = self_keys([name])
        for other in self._others.refresh():
            for each in other.files.read([number for _, number in other.find(key)]):
                if int(each["page"]) == name and other.files.is_sound(each):
                    return other.files.url(each)
        return None

    # --------------------------------------------------------------- writing

    def give_way(self, url: str, to: str) -> None:
        """Record that the page `to` replaces a representative.

        Records in the indices of other ants stay unchanged. Raises RepositoryError if the disk reports an error.
        """
        name = number_of(url)
        for number in self._there(self._numbers_of([name])[0]):
            [record] = self._files.read([number])
            if int(record["page"]) == name:
                names = PageNames(name, int(record["digest"]), number_of(to))
                with self._disk():
                    self._files.replace(number, record, names, record["sketch"].tobytes())

    def keep(self, probe: Probe) -> None:
        """Write a page to the index as a representative. Raises RepositoryError if the disk reports an error."""
        drawn = probe.page.sketch or NO_SKETCH
        with self._disk():
            if probe.number is None:
                number, stale = self._size, set[int]()
                self._files.append(number, probe.names, probe.page.url, drawn)
                self._size += 1
            else:
                number = probe.number
                before = self._files.read([number])
                stale = set(keys_of_records(before)[0])
                self._files.note(number)
                self._files.replace(number, before[0], probe.names, drawn)
            self._recent.add([key for key in probe.keys if key not in stale], number)
            if len(self._recent) >= self._pages_a_run * KEYS_A_PAGE:
                self._write_run(self._size)

    def close(self) -> None:
        """Close the files and cancel a running merge."""
        self._runs.close()
        self._files.close()
        self._others.close()

    # --------------------------------------------------------------- private

    def _records_of(self, names: Sequence[int]) -> list[np.void | None]:
        """Return the record for each page fingerprint, or None for a fingerprint without a record."""
        return [
            next((record for record in self._files.read(self._there(found)) if int(record["page"]) == name), None)
            if found
            else None
            for name, found in zip(names, self._numbers_of(names), strict=True)
        ]

    def _numbers_of(self, names: Sequence[int]) -> list[set[int]]:
        """Return, for each page fingerprint, the numbers of the records that may belong to it."""
        if not names:
            return []
        keys = self_keys(names)
        numbers = [self._recent.find([key]) for key in keys.tolist()]
        for place, number in self._runs.find(keys):
            numbers[place].add(number)
        return numbers

    def _there(self, numbers: Iterable[int]) -> list[int]:
        """Sort record numbers, and drop the numbers that the index does not contain. A record number beyond the size of
        the index shows that a run is damaged.
        """
        found = sorted(numbers)
        there = [number for number in found if number < self._size]
        self._is_damaged |= len(there) < len(found)
        return there

    def _write_run(self, records: int) -> None:
        """Write to a new run the keys that are only in memory."""
        self._files.sync()
        self._runs.write(*self._recent.entries(), records=records)
        self._files.forget_noted()
        self._recent.written()

    def _read_recent_keys(self) -> None:
        """Load the keys that are not yet in a run: those of the newest records."""
        behind = self._runs.records
        for number in sorted({number for number in self._files.noted() if number < behind}):
            self._recent.add(keys_of_records(self._files.read([number]))[0], number)
        for first in range(behind, self._size, self._pages_a_run):
            if first > behind:
                self._write_run(first)
            numbers = range(first, min(first + self._pages_a_run, self._size))
            for number, keys in zip(numbers, keys_of_records(self._files.read(numbers)), strict=True):
                self._recent.add(keys, number)

    def _build_runs_again(self) -> None:
        logger.warning("%s: a run became shorter: all runs are rebuilt from the page records", self._folder)
        self._runs.clear()
        self._recent.clear()
        self._read_recent_keys()

    def _empty(self, why: str) -> None:
        if len(self._files):
            logger.warning("%s: %s: a new index is built while pages are fetched", self._folder, why)
        self._runs.clear()
        self._files.empty()
        with replaced(self._folder / "FORM", durable=True) as written:
            written.write(self._form.encode())

    def _begin_anew(self) -> None:
        self._empty(_DAMAGED)
        self._recent.clear()
        self._size = 0
        self._is_damaged = False

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Turn errors of the disk into RepositoryError."""
        try:
            yield
        except OSError as error:
            raise RepositoryError(f"{self._folder}: duplicates cannot be stored: {error}") from error


def _matches(probe: Probe, records: npt.NDArray[np.void], least: float, files: RecordFiles) -> tuple[list[Match], int]:
    """Return the records that a page resembles, and the number of damaged records."""
    exact = records["digest"] == probe.names.digest
    alike = exact.astype(np.float64)
    if drawn := [each for each in (probe.page.sketch, probe.page.second_sketch) if each is not None]:
        alike = np.maximum(alike, most_resemblance(drawn, records["sketch"]))
    near = np.flatnonzero((alike >= least) & (records["page"] != probe.names.page)).tolist()
    found = [
        Match(url, float(alike[k]), bool(exact[k]), int(records["canonical"][k]), int(records["digest"][k]))
        for k in near
        if number_of(url := files.url(records[k])) == int(records["page"][k])
    ]
    return found, len(near) - len(found)


def _page_of(url: str, record: np.void) -> IndexedPage:
    drawn = record["sketch"].tobytes()
    return IndexedPage(url, f"{int(record['digest']):016x}", None if drawn == NO_SKETCH else drawn)
