"""Pages that were being examined when the process died: they go last, alone, and after three deaths no more.

Place in the walk: around the examination of every page of our own. A page that a process dies of comes back at the next
start, for its lease was not settled, and would be among the first pages to be asked for again. So what is under
examination stands in a small file while it is, in memory that the kernel keeps when the process is killed; what stands
there at the next start is a suspect. Of pages that were examined at the same time none is known to be the one, so only
a death with a single page under examination counts; and a suspect is examined while no other page is, so that its next
death does. A suspect that was examined well is one no more.

Hostile bodies are read by the `sandbox`; this is for what nobody foresaw, the machine's memory included.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.records import Lease

__all__ = ["CRASHES", "Suspects"]

CRASHES: Final = 3
"""Deaths, with a page alone under examination, after which it is not examined but has failed."""
_SLOTS: Final = 16
_SLOT_BYTES: Final = 4_096
_LENGTH: Final = struct.Struct("<I")


class Suspects:
    """What is examined now, and what was when a process died. Any thread may examine; one process at a time.

    Parameters
    ----------
    folder : where the two files lie, beside the store; None remembers nothing
    """

    def __init__(self, folder: Path | None) -> None:
        self._deaths: dict[str, int] = {}
        self._list = None if folder is None else folder / "suspects.json"
        self._slots: mmap.mmap | None = None
        self._free = list(range(_SLOTS))
        self._turn = threading.Condition()
        self._examined = 0
        self._alone = False
        self._waiting = 0
        self.found: Sequence[str] = ()
        """What was under examination when the last process died."""
        if folder is not None:
            self._open(folder / "examined", folder / "suspects.json")

    def __contains__(self, url: str) -> bool:
        return url in self._deaths

    def __len__(self) -> int:
        return len(self._deaths)

    def may_examine_at_once(self, url: str) -> bool:
        """Whether a page may be examined now without waiting for its turn."""
        return not (self._alone or self._waiting) and url not in self._deaths

    def has_crashed(self, url: str) -> bool:
        """Whether a page was the end of too many processes. True once: the next time that it is due it may try again,
        and the next death makes it true again."""
        if self._deaths.get(url, 0) < CRASHES:
            return False
        self._deaths[url] = CRASHES - 1
        self._write()
        return True

    @contextmanager
    def examining(self, url: str) -> Iterator[None]:
        """While a page is examined. Waits until it may be: a suspect until no other page is."""
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
            # Also after an exception, which is no death.
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
        """Leases of one site that may be asked now, of both queues, and those to give back.

        Suspects are given back, and so leased again, until they are all that is left of their site.
        """
        others = [[each for each in leases if each.record.url not in self._deaths] for leases in (never, recrawl)]
        if not self._deaths or not any(others):
            return list(never), list(recrawl), []
        return others[0], others[1], [each for each in (*never, *recrawl) if each.record.url in self._deaths]

    def close(self) -> None:
        """Nothing is examined any more."""
        if self._slots is not None:
            self._slots.close()
            self._slots = None

    # ------------------------------------------------------------ the files

    def _open(self, examined: Path, known: Path) -> None:
        """Take over what the last process left behind."""
        try:
            self._deaths = msgspec.json.decode(known.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.DecodeError):  # absent, or torn by a power cut
            self._deaths = {}
        try:
            with open(os.open(examined, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                file.truncate(_SLOTS * _SLOT_BYTES)
                self._slots = mmap.mmap(file.fileno(), _SLOTS * _SLOT_BYTES)
        except OSError:  # a disk that takes no more: nothing is remembered
            return
        self.found = [url for slot in range(_SLOTS) if (url := self._marked(slot))]
        for url in self.found:
            self._deaths[url] = self._deaths.get(url, 0) + (len(self.found) == 1)
        if self.found:
            self._write()
        for slot in range(_SLOTS):
            self._clear_slot(slot)

    def _mark(self, url: str) -> int | None:
        """Note a page as under examination: the length last, so that a torn note is none."""
        packed = url.encode()
        if self._slots is None or not self._free or len(packed) > _SLOT_BYTES - _LENGTH.size:
            return None
        slot = self._free.pop()
        at = slot * _SLOT_BYTES
        self._slots[at + _LENGTH.size : at + _LENGTH.size + len(packed)] = packed
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
        length = _LENGTH.unpack_from(self._slots, at)[0]
        if not 0 < length <= _SLOT_BYTES - _LENGTH.size:
            return None
        return self._slots[at + _LENGTH.size : at + _LENGTH.size + length].decode("utf-8", "replace")

    def _write(self) -> None:
        """The suspects as they are now, whole or not at all. A disk that takes no more is somebody else's to report."""
        assert self._list is not None
        draft = self._list.with_suffix(".tmp")
        try:
            draft.write_bytes(msgspec.json.encode(self._deaths))
            draft.replace(self._list)
        except OSError:
            return
