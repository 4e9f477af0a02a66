"""Remember the pages under examination at a crash, so that no page crashes every crawl.

A page that crashes the process is not settled, so it may crash the next process too. The URLs of pages under
examination are in a mapped file, which survives a kill. Pages under examination at a crash are *suspects*: the next
process examines them last, and each of them alone. A crash counts against a page only if no other page was under
examination. A suspect that is examined without a crash is no longer a suspect. A page that crashes three processes
counts as failed.

Besides hostile bodies, the guard covers other causes of a crash, such as a machine without free memory.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.private_files import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.records import Lease

__all__ = ["CRASHES", "CrashSuspects"]

CRASHES: Final = 3
"""A page counts as failed if it has crashed this many processes while no other page was under examination."""
_SLOTS: Final = 16
_SLOT_BYTES: Final = 4_096
_FILE_BYTES: Final = _SLOTS * _SLOT_BYTES
_LENGTH: Final = struct.Struct("<I")


class CrashSuspects:
    """The pages under examination now and at the last crash. Any thread may examine pages, but only one process may use
    the files.

    Parameters
    ----------
    folder : the folder of the two files, beside the store; None: nothing is remembered
    """

    def __init__(self, folder: Path | None) -> None:
        self._deaths: dict[str, int] = {}
        self._list = None if folder is None else folder / "suspects.json"
        self._file: int | None = None
        self._slots: mmap.mmap | None = None
        self._free = list(range(_SLOTS))
        self._turn = threading.Condition()
        self._examined = 0
        self._alone = False
        self._waiting = 0
        self.found: Sequence[str] = ()
        """Pages under examination when the last process crashed."""
        if folder is not None:
            self._open(folder / "examined", folder / "suspects.json")

    def __contains__(self, url: str) -> bool:
        return url in self._deaths

    def __len__(self) -> int:
        return len(self._deaths)

    def may_examine_at_once(self, url: str) -> bool:
        """Return whether a page can be examined without waiting."""
        return not (self._alone or self._waiting) and url not in self._deaths

    def has_crashed(self, url: str) -> bool:
        """Return whether a page has crashed too many processes. If the result is True, one of the page's crashes no
        longer counts, so that the page is examined again when it is due."""
        if self._deaths.get(url, 0) < CRASHES:
            return False
        self._deaths[url] = CRASHES - 1
        self._write()
        return True

    @contextmanager
    def examining(self, url: str) -> Iterator[None]:
        """Mark a page as under examination while the `with` block runs. If the page is a suspect, the call first waits
        until no other page is under examination.
        """
        suspect = url in self._deaths
        with self._turn:
            self._waiting += suspect
            while self._alone or (suspect and self._examined):
                self._turn.wait()
            self._waiting -= suspect
            self._alone = suspect
            self._examined += 1
            slot = self._mark(url)
        try:
            yield
        finally:
            # This also runs after an exception, which is not a death.
            with self._turn:
                self._clear(slot)
                self._examined -= 1
                if suspect:
                    self._alone = False
                self._turn.notify_all()
        if suspect and self._deaths.pop(url, None) is not None:
            self._write()

    def put_last(
        self, never: Sequence[Lease], recrawl: Sequence[Lease]
    ) -> tuple[list[Lease], list[Lease], list[Lease]]:
        """Divide the leases of a site into leases that may be fetched now and leases to release.

        While the site has other pages to fetch, the leases of its suspect pages are released.
        """
        others = [[each for each in leases if each.record.url not in self._deaths] for leases in (never, recrawl)]
        if not self._deaths or not any(others):
            return list(never), list(recrawl), []
        return others[0], others[1], [each for each in (*never, *recrawl) if each.record.url in self._deaths]

    def close(self) -> None:
        """Close the file of pages under examination."""
        if self._slots is not None:
            self._slots.close()
            self._slots = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, examined: Path, known: Path) -> None:
        """Find in the file which pages the previous process was examining, and clear the file."""
        try:
            self._deaths = msgspec.json.decode(known.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError):  # missing, or torn by a power failure
            self._deaths = {}
        try:
            self._file = os.open(examined, os.O_RDWR | os.O_CREAT, 0o600)
            self._fill()
            self._slots = mmap.mmap(self._file, _FILE_BYTES)
        except OSError:  # the disk is full: nothing is remembered
            return
        self.found = [url for slot in range(_SLOTS) if (url := self._marked(slot))]
        for url in self.found:
            self._deaths[url] = self._deaths.get(url, 0) + (len(self.found) == 1)
        if self.found:
            self._write()
        for slot in range(_SLOTS):
            self._clear_slot(slot)

    def _mark(self, url: str) -> int | None:
        packed = url.encode()
        if self._slots is None or not self._free or len(packed) > _SLOT_BYTES - _LENGTH.size or not self._is_whole():
            return None
        slot = self._free.pop()
        at = slot * _SLOT_BYTES
        self._slots[at + _LENGTH.size : at + _LENGTH.size + len(packed)] = packed
        # The length is written last, so that a torn entry does not count.
        _LENGTH.pack_into(self._slots, at, len(packed))
        return slot

    def _clear(self, slot: int | None) -> None:
        if slot is not None:
            self._clear_slot(slot)
            self._free.append(slot)

    def _clear_slot(self, slot: int) -> None:
        if self._slots is not None:
            _LENGTH.pack_into(self._slots, slot * _SLOT_BYTES, 0)

    def _marked(self, slot: int) -> str | None:
        assert self._slots is not None
        at = slot * _SLOT_BYTES
        [length] = _LENGTH.unpack_from(self._slots, at)
        if not 0 < length <= _SLOT_BYTES - _LENGTH.size:
            return None
        return self._slots[at + _LENGTH.size : at + _LENGTH.size + length].decode("utf-8", "replace")

    def _is_whole(self) -> bool:
        """Restore the file's full size if another program has truncated it; return False if that fails."""
        assert self._file is not None
        # Access past the end of the file would kill the process.
        with suppress(OSError):
            # Only before an examination: a system call in the loop's thread lets other threads run, which costs 10 µs.
            if os.fstat(self._file).st_size < _FILE_BYTES:
                self._fill()
            return True
        return False

    def _fill(self) -> None:
        """Fill the file with zeros up to its full size."""
        # On a full disk, a hole in a mapped file would kill the process.
        assert self._file is not None
        size = os.fstat(self._file).st_size
        if os.pwrite(self._file, bytes(max(_FILE_BYTES - size, 0)), size) < _FILE_BYTES - size:
            raise OSError(errno.ENOSPC, "the disk is full")
        os.truncate(self._file, _FILE_BYTES)

    def _write(self) -> None:
        """Write the file of suspects, completely or not at all."""
        assert self._list is not None
        with suppress(OSError), replaced(self._list) as file:
            file.write(msgspec.json.encode(self._deaths))
