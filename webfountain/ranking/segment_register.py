"""Registers: each writer of a link log lists the files that it wrote, so that a deleted file is noticed.

A writer makes a register in the log's folder `written` when it opens the log. The register lists the writer's segments,
each with its *generation*, the number of compactions before it. A segment is removed from the register after two more
compactions, because it has certainly been merged by then. While the writer runs, the register also names the writer's
journal. If a writer is killed, the process that takes over its journal marks the register as closed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from webfountain.ranking.link_files import COMPLETE_SINCE, DamagedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.ranking.link_files import LogFiles, Manifest

__all__ = [
    "SegmentRegister",
    "close_register",
    "damaged_registers",
    "drop_old_registers",
    "has_registers",
    "mend_registers",
    "newest_generation",
]

_FOLDER: Final = "written"
_SUFFIX: Final = ".txt"
_LINE: Final = re.compile(r"(\d{1,9}) (segments/(?:links|names)-[\w.-]+\.parquet)")
_OPEN: Final = re.compile(r"open (-|\.\./[\w.-]+/[\w.-]+)")
_SEGMENT: Final = re.compile(r"segments/(?:links|names)-\d{8,}-([\w.-]+)-\d{16}\.parquet")
_ELSEWHERE: Final = "-"


class _Entries(NamedTuple):
    """The contents of a register: the segments as (generation, name), and the journal while the writer runs."""

    segments: tuple[tuple[int, str], ...] = ()
    journal: str | None = None

    def text(self) -> str:
        """Return the text of the register file. The last line is a checksum."""
        first = "" if self.journal is None else f"open {self.journal}\n"
        lines = first + "".join(f"{generation} {name}\n" for generation, name in self.segments)
        return f"{lines}{crc32(lines.encode()):08x}\n"


class SegmentRegister:
    """The register of one writer."""

    def __init__(self, files: LogFiles, writer: str, journal: Path | None) -> None:
        """Create the register file of a writer. The file `journal` must already exist. Raise RepositoryError if the
        disk reports an error."""
        self._files = files
        self._file = _file_of(writer)
        self._entries = _Entries(journal=_ELSEWHERE if journal is None else files.beside(journal) or _ELSEWHERE)
        self._has_segments = False
        self._write()

    def add(self, segments: Sequence[str]) -> None:
        """Add new segments to the register. Raise RepositoryError if the disk reports an error."""
        self._has_segments = True
        try:
            present = self._files.manifest().generation
        except DamagedFile:
            return  # the repair reads all segments to find out which are in the shards
        kept = [each for each in self._entries.segments if present - 1 <= each[0] <= present]
        self._entries = self._entries._replace(segments=(*kept, *((present, name) for name in segments)))
        self._write()

    def close(self) -> None:
        """Record that the writer has ended. A register that lists no segments is removed."""
        self._entries = self._entries._replace(journal=None)
        if self._has_segments:
            self._write()
        else:
            self._files.remove(self._file)

    def _write(self) -> None:
        self._files.replace_text(self._file, self._entries.text())


def close_register(files: LogFiles, writer: str) -> None:
    """Record that this process has taken over the journal of a killed writer."""
    try:
        entries = _read(files, _file_of(writer))
    except DamagedFile:
        return  # a check reports it
    if entries.journal is not None:
        files.replace_text(_file_of(writer), entries._replace(journal=None).text())


def damaged_registers(files: LogFiles, manifest: Manifest) -> Iterator[DamagedFile]:
    """Yield an error for each missing register, segment or journal, and for each damaged register."""
    fresh = files.segments(manifest)
    registers = files.listed(_FOLDER, suffix=_SUFFIX)
    if not files.exists(COMPLETE_SINCE):
        fresh = []  # an earlier version wrote it, or the time is missing, which is reported anyway
        if registers:
            yield files.damaged(COMPLETE_SINCE, FileNotFoundError("it is missing"))
    found: dict[str, _Entries] = {}
    for register in registers:
        try:
            found[register] = _read(files, register)
        except DamagedFile as error:
            yield error
    absent = sorted(set(filter(None, map(_register_of, fresh))) - set(registers))
    if absent and _present_generation(files) <= manifest.generation:  # or a compaction ended meanwhile
        for register in absent:
            yield files.damaged(register, FileNotFoundError("it is missing"))
    # Read after the registers, because a segment is written before it is listed.
    known = {*files.listed("segments"), *manifest.contained, *files.aside()}
    # If the manifest has no list of contained segments, a repair made it. Then segments of the last generation may be
    # in the shards.
    oldest = manifest.generation - bool(manifest.contained)
    for register, entries in found.items():
        if _is_journal_missing(files, entries) and _is_journal_missing(files, _read(files, register)):
            yield files.damaged(str(entries.journal), FileNotFoundError("it is missing"))
        newest = max((generation for generation, _ in entries.segments), default=0)
        if newest > manifest.generation:
            if _present_generation(files) >= newest:
                continue  # a compaction ended meanwhile
            yield files.damaged(register, ValueError("it is newer than the manifest"))
            continue
        for generation, name in entries.segments:
            if generation >= oldest and name not in known:
                yield files.damaged(name, FileNotFoundError("it is missing"))


def mend_registers(files: LogFiles, manifest: Manifest) -> None:
    """Rebuild damaged registers from the existing segments, and remove missing journals from registers."""
    lost: dict[str, list[tuple[int, str]]] = {}
    for segment in files.segments(manifest):
        if (register := _register_of(segment)) is not None:
            lost.setdefault(register, []).append((manifest.generation, segment))
    for register in files.listed(_FOLDER, suffix=_SUFFIX):
        lost.pop(register, None)
        try:
            entries = _read(files, register)
        except DamagedFile:
            continue
        if _is_journal_missing(files, entries):
            files.replace_text(register, entries._replace(journal=None).text())
    for register, segments in lost.items():
        files.replace_text(register, _Entries(tuple(segments)).text())


def _is_journal_missing(files: LogFiles, entries: _Entries) -> bool:
    return entries.journal not in (None, _ELSEWHERE) and not files.exists(str(entries.journal))


def _present_generation(files: LogFiles) -> int:
    try:
        return files.manifest().generation
    except DamagedFile:
        return 0


def newest_generation(files: LogFiles) -> int:
    """Return the highest generation number in the readable registers."""
    newest = 0
    for register in files.listed(_FOLDER, suffix=_SUFFIX):
        try:
            newest = max([newest, *(generation for generation, _ in _read(files, register).segments)])
        except DamagedFile:
            continue
    return newest


def has_registers(files: LogFiles) -> bool:
    """Return whether the log has a register."""
    return bool(files.listed(_FOLDER, suffix=_SUFFIX))


def drop_old_registers(files: LogFiles, manifest: Manifest) -> None:
    """If a writer has ended and all its segments were merged, delete its register."""
    for register in files.listed(_FOLDER, suffix=_SUFFIX):
        try:
            segments, journal = _read(files, register)
            if journal is None and all(generation + 1 < manifest.generation for generation, _ in segments):
                files.remove(register)
        except DamagedFile:
            continue  # a check reports it


def _file_of(writer: str) -> str:
    return f"{_FOLDER}/{writer}{_SUFFIX}"


def _register_of(segment: str) -> str | None:
    found = _SEGMENT.fullmatch(segment)
    return None if found is None else _file_of(found[1])


def _read(files: LogFiles, register: str) -> _Entries:
    """Return the entries of a register, or empty entries if the file does not exist."""
    text = files.text(register)
    if text is None:
        return _Entries()
    lines = text.splitlines()
    journal = opened[1] if lines and (opened := _OPEN.fullmatch(lines[0])) is not None else None
    found = map(_LINE.fullmatch, lines[journal is not None : -1])
    entries = _Entries(tuple((int(each[1]), each[2]) for each in found if each is not None), journal)
    if entries.text() != text:
        raise files.damaged(register, ValueError("its checksum is wrong"))
    return entries
