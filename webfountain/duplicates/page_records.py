"""The records of an index of duplicates, and a file of their URLs.

A record contains the fingerprint and digest of a page, its sketch, and the fingerprint of its canonical URL. If a page
changes, its record is replaced in place. The file `again` contains the numbers of replaced records whose new keys are
not in a run yet (`key_runs`).

A disk may damage records, so a record is valid only if it has the fingerprint of its URL (`RecordFiles.is_sound`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.shingles import mixed
from webfountain.core.sketch import BANDS, SKETCH_BYTES, band_keys
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Keys = npt.NDArray[np.uint64]

__all__ = [
    "KEYS_A_PAGE",
    "NO_SKETCH",
    "RECORD",
    "PageNames",
    "RecordFiles",
    "digest_number",
    "keys_of_pages",
    "keys_of_records",
    "number_of",
    "self_keys",
]

RECORD: Final = np.dtype(
    [("page", "<u8"), ("digest", "<u8"), ("canonical", "<u8"), ("url", "<u8"), ("sketch", "u1", (SKETCH_BYTES,))]
)
NO_SKETCH: Final = bytes(SKETCH_BYTES)
KEYS_A_PAGE: Final = BANDS + 2
"""Number of keys per page: one per band of the sketch, one for the digest, one for the page itself."""
_DIGEST, _SELF = np.uint64(0xD1CE57), np.uint64(0x5E1F)
"""Numbers mixed into the keys of digests and of pages, so that a digest and an equal fingerprint get different keys."""
_FILES: Final = ("records", "urls", "again")
_USUAL_BYTES: Final = 256
_MOST_BYTES: Final = 1 << 16
"""Number of bytes read to find a URL: first a length that is enough for most URLs, then the largest length."""
_SAMPLES: Final = 64
"""Number of records that are checked when an index is opened."""
_record: Final = struct.Struct(f"<QQQQ{SKETCH_BYTES}s")
_number: Final = struct.Struct("<I")


class PageNames(NamedTuple):
    """Fingerprint of a page, the first bytes of its digest, and the fingerprint of its canonical URL (0 if it has
    none)."""

    page: int
    digest: int
    canonical: int


class RecordFiles:
    """The three open files of one index. Every method raises `OSError` if the disk reports an error."""

    def __init__(self, folder: Path, flags: int) -> None:
        # Created in this order and opened in reverse: if the last one exists, all exist.
        order = _FILES if flags & os.O_CREAT else _FILES[::-1]
        files = {name: os.open(folder / name, flags, 0o600) for name in order}
        self._records, self._urls, self._again = (files[name] for name in _FILES)
        self._end = os.fstat(self._urls).st_size  # of the URLs, for the only process that writes

    @classmethod
    def to_write(cls, folder: Path) -> RecordFiles:
        """Open the files, and create missing ones. Raise BlockingIOError if another process uses the files."""
        files = cls(folder, os.O_RDWR | os.O_CREAT)
        fcntl.lockf(files._records, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return files

    @classmethod
    def to_read(cls, folder: Path) -> RecordFiles:
        """Open the files of another process's index. Raise FileNotFoundError if the index is still being created."""
        return cls(folder, os.O_RDONLY)

    def __len__(self) -> int:
        """Return the number of complete records."""
        return os.fstat(self._records).st_size // RECORD.itemsize

    def read(self, numbers: Sequence[int]) -> npt.NDArray[np.void]:
        """Return the records with the given numbers; numbers without a record are left out."""
        size = RECORD.itemsize
        found = [os.pread(self._records, size, number * size) for number in numbers]
        return np.frombuffer(b"".join([each for each in found if len(each) == size]), dtype=RECORD)

    def url(self, record: np.void) -> str:
        """Return the URL of a record; "" if the files are damaged."""
        for size in (_USUAL_BYTES, _MOST_BYTES):
            try:
                found, ends, _ = os.pread(self._urls, size, int(record["url"])).partition(b"\n")
            except OverflowError:  # no file is that long
                return ""
            if ends:
                return found.decode("utf-8", "replace")
        return ""

    def is_sound(self, record: np.void) -> bool:
        """Return whether a record has the fingerprint of its URL."""
        return number_of(self.url(record)) == int(record["page"])

    def samples_are_sound(self) -> bool:
        """Return whether a sample of records is intact."""
        size = len(self)
        numbers = sorted({0, *range(0, size, max(1, size // _SAMPLES)), size - 1}) if size else []
        return all(map(self.is_sound, self.read(numbers)))

    def append(self, number: int, names: PageNames, url: str, sketch: bytes) -> None:
        line = url.encode() + b"\n"
        _write_at(self._urls, line, self._end)
        _write_at(self._records, _record.pack(*names, self._end, sketch), number * RECORD.itemsize)
        self._end += len(line)

    def replace(self, number: int, before: np.void, names: PageNames, sketch: bytes) -> None:
        """Replace a record. If the keys of the record change, call `note` first."""
        _write_at(self._records, _record.pack(*names, int(before["url"]), sketch), number * RECORD.itemsize)

    def note(self, number: int) -> None:
        """Add a record's number to the file `again`, so that the record's keys are read again."""
        os.write(self._again, _number.pack(number))

    def count_noted(self) -> int:
        return os.fstat(self._again).st_size // _number.size

    def noted(self, first: int = 0) -> list[int]:
        """Return the record numbers in the file `again`, skipping the first `first` numbers."""
        data = os.pread(self._again, (self.count_noted() - first) * _number.size, first * _number.size)
        return [number for (number,) in _number.iter_unpack(data[: len(data) // _number.size * _number.size])]

    def forget_noted(self) -> None:
        """Empty the file `again`, because all keys are in runs now."""
        os.ftruncate(self._again, 0)
        os.lseek(self._again, 0, os.SEEK_SET)

    def cut(self) -> None:
        """Remove the incomplete record that a killed process left at the end of the file."""
        os.ftruncate(self._records, len(self) * RECORD.itemsize)
        os.lseek(self._again, 0, os.SEEK_END)

    def sync(self) -> None:
        """Write records and URLs to the disk (fsync)."""
        os.fsync(self._urls)
        os.fsync(self._records)

    def empty(self) -> None:
        for file in (self._records, self._urls):
            os.ftruncate(file, 0)
        self._end = 0
        self.forget_noted()

    def close(self) -> None:
        for file in (self._records, self._urls, self._again):
            os.close(file)


def number_of(url: str) -> int:
    """Return the fingerprint of a canonical URL, by which the index identifies a page."""
    return int.from_bytes(fingerprint(url), "little")


def digest_number(digest: str) -> int:
    """Return the first eight bytes of a hex digest."""
    return int(digest[:16], 16)


def self_keys(pages: Sequence[int]) -> Keys:
    """Return the (n,) keys of pages from their fingerprints."""
    return mixed(np.array(pages, dtype=np.uint64) ^ _SELF)


def keys_of_pages(names: Sequence[PageNames] | Keys, drawn: npt.NDArray[np.uint8]) -> Keys:
    """Return the (n, 10) keys of pages, for bands, digest and page."""
    rows = np.array(names, dtype=np.uint64).reshape(-1, 3)
    return np.hstack([band_keys(drawn), mixed(rows[:, 1:2] ^ _DIGEST), mixed(rows[:, :1] ^ _SELF)])


def keys_of_records(records: npt.NDArray[np.void]) -> list[list[int]]:
    names = np.stack([records[name] for name in PageNames._fields], axis=1)
    rows = keys_of_pages(names, records["sketch"]).tolist()
    return [row if drawn.any() else row[BANDS:] for row, drawn in zip(rows, records["sketch"], strict=True)]


def _write_at(file: int, data: bytes, at: int) -> None:
    """Write all bytes, or raise OSError. A partial write is harmless, because bytes after the known end are never
    read.
    """
    if os.pwrite(file, data, at) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
