"""The register of a link log's segments: it shows that a segment was deleted, which no other file names.

Each writer has a file in the folder `written` of the log. After each segment it writes the names of its segments there,
each with the generation of the shards at that time. A compaction takes in all segments that are there when it begins,
so those of two generations ago are in the shards, and are no longer listed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webfountain.ranking.link_files import DamagedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.ranking.link_files import LogFiles, Manifest

__all__ = ["SegmentRegister", "damaged_registers", "drop_old_registers", "newest_generation"]

_FOLDER: Final = "written"
_SUFFIX: Final = ".txt"
_LINE: Final = re.compile(r"(\d{1,9}) (segments/(?:links|names)-[\w.-]+\.parquet)")


class SegmentRegister:
    """The register of one writer, which no other process writes."""

    def __init__(self, files: LogFiles, writer: str) -> None:
        self._files = files
        self._file = f"{_FOLDER}/{writer}{_SUFFIX}"
        self._lines: list[tuple[int, str]] = []

    def add(self, segments: Sequence[str]) -> None:
        """List segments that were just written. Raise RepositoryError if the disk reports an error."""
        try:
            present = self._files.manifest().generation
        except DamagedFile:
            return  # the repair reads all segments, and finds out which are in the shards
        self._lines = [(generation, name) for generation, name in self._lines if present - 1 <= generation <= present]
        self._lines += [(present, name) for name in segments]
        self._files.replace_text(self._file, "".join(f"{generation} {name}\n" for generation, name in self._lines))


def damaged_registers(files: LogFiles, manifest: Manifest) -> Iterator[DamagedFile]:
    """Yield an error for each segment that is missing, and for each register that cannot be read."""
    found: dict[str, list[tuple[int, str]]] = {}
    for register in files.listed(_FOLDER, suffix=_SUFFIX):
        try:
            found[register] = _lines(files, register)
        except DamagedFile as error:
            yield error
    # Read after the registers, because a segment is written before it is listed.
    known = {*files.listed("segments"), *manifest.contained, *files.aside()}
    for register, lines in found.items():
        newest = max((generation for generation, _ in lines), default=0)
        if newest > manifest.generation:
            if _present_generation(files) >= newest:
                continue  # a compaction ended meanwhile
            yield files.damaged(register, ValueError("it is newer than the manifest"))
            continue
        for generation, name in lines:
            if generation + 1 >= manifest.generation and name not in known:
                yield files.damaged(name, FileNotFoundError("it is missing"))


def _present_generation(files: LogFiles) -> int:
    try:
        return files.manifest().generation
    except DamagedFile:
        return 0


def newest_generation(files: LogFiles) -> int:
    """Return the newest generation in a readable register. An older manifest is not the last one."""
    newest = 0
    for register in files.listed(_FOLDER, suffix=_SUFFIX):
        try:
            newest = max([newest, *(generation for generation, _ in _lines(files, register))])
        except DamagedFile:
            continue
    return newest


def drop_old_registers(files: LogFiles, manifest: Manifest) -> None:
    """Delete the registers of writers whose segments are all in the shards since an earlier generation."""
    for register in files.listed(_FOLDER, suffix=_SUFFIX):
        try:
            if all(generation + 1 < manifest.generation for generation, _ in _lines(files, register)):
                files.remove(register)
        except DamagedFile:
            continue  # a check reports it


def _lines(files: LogFiles, register: str) -> list[tuple[int, str]]:
    found = []
    for line in (files.text(register) or "").splitlines():
        entry = _LINE.fullmatch(line)
        if entry is None:
            raise files.damaged(register, ValueError("a line names no segment"))
        found.append((int(entry[1]), entry[2]))
    return found
