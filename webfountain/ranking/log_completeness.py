"""Completeness of a link log: every page fetched after a recorded time has a row, even if files were damaged.

Rows of earlier fetches are missing if a file was damaged, or if the log is younger than its crawl. If a fetch finds
that a page has changed, a row is added to the log. An unchanged page is logged again if its row may be missing
(`pages.examiner`).

`mend` repairs a log. `mend` moves unreadable files to the folder `damaged`, and replaces a missing shard with an empty
one. Registers of the writers show which files are missing (`segment_register`). If the manifest is lost, `mend` makes a
new one for the newest complete set of shards.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from math import isfinite
from typing import TYPE_CHECKING, Final

from webfountain.ranking.link_files import COMPLETE_SINCE, MANIFEST, NAME, ROW, DamagedFile, LogFiles, Manifest
from webfountain.ranking.segment_register import damaged_registers, has_registers, mend_registers, newest_generation

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GRACE_S", "complete_since", "damaged_files", "incomplete_until", "mend", "open_log"]

logger = logging.getLogger(__name__)

GRACE_S: Final = 900.0
"""If rows are lost, every crawl that writes the log notices the loss within this time, in seconds."""

_SHARD: Final = re.compile(r"shards/(links|names)-(\d{6})-(\d{4})\.parquet")


def complete_since(files: LogFiles) -> float | None:
    """Return the time from which a log is complete, UTC seconds, or None if no crawl has opened the log.

    Raises DamagedFile if the file contains no time, or RepositoryError if the disk reports an error.
    """
    text = files.text(COMPLETE_SINCE)
    if text is None:
        return None
    try:
        since = float(text)
        if not isfinite(since):
            raise ValueError(f"{since} is not a time")
    except ValueError as error:
        raise files.damaged(COMPLETE_SINCE, error) from error
    return since


def open_log(files: LogFiles, *, at: float) -> float:
    """Open a log for a crawl, and return the time from which the log is complete. If the file `complete-since` is
    missing or unreadable, write `at` to this file."""
    try:
        since = complete_since(files)
        if since is not None:
            return since
    except DamagedFile:
        pass
    with files.lock():  # crawls that share a new log may begin together
        return _begin_log(files, at=at)


def _begin_log(files: LogFiles, *, at: float) -> float:
    """Record `at` as the time from which the log is complete, unless the log already states a time. If the file
    `complete-since` is damaged or lost, log a warning."""
    has_writers = has_registers(files)
    try:
        since = complete_since(files)
        if since is not None:
            return since
        if has_writers:
            raise files.damaged(COMPLETE_SINCE, FileNotFoundError("it is missing"))
        mend_registers(files, files.manifest())  # for the segments of an earlier version
    except DamagedFile as error:
        logger.warning("%s: every page is logged again at its next visit", error)
    files.replace_text(COMPLETE_SINCE, str(at))
    return at


def incomplete_until(files: LogFiles, at: float) -> float:
    """Record that rows were lost before `at`, and return the time from which the log will be complete."""
    since = at + GRACE_S
    files.replace_text(COMPLETE_SINCE, str(since))
    return since


def damaged_files(url: str) -> list[str]:
    """Return a line of text for each damaged file of a log. The call reads the whole log."""
    files = LogFiles(url)
    try:
        manifest = _last_manifest(files)
    except DamagedFile as error:
        return [str(error), *(str(each) for each in _damaged(files, _in_force(files)))]
    return [str(each) for each in _damaged(files, manifest)]


def mend(url: str, *, at: float) -> list[str]:
    """Repair a log, and return a line of text for each damaged file.

    `at` is the current time.

    Raises RepositoryError if the disk reports an error.
    """
    files = LogFiles(url)
    mended: list[str] = []
    with files.lock():
        try:
            manifest = _last_manifest(files)
        except DamagedFile as error:
            manifest = _in_force(files)
            files.set_aside(MANIFEST)
            files.replace_manifest(manifest)
            mended.append(str(error))
        for each in list(_damaged(files, manifest)):
            files.set_aside(each.name)
            if each.name.startswith("shards/"):
                schema = ROW if "/links-" in each.name else NAME
                files.write_table(each.name, schema.empty_table())
            mended.append(str(each))
        if mended:
            mend_registers(files, manifest)
            incomplete_until(files, at)
    return mended


def _last_manifest(files: LogFiles) -> Manifest:
    """Return the manifest of the last compaction. Raise DamagedFile if the newest manifest was lost."""
    newest = newest_generation(files)  # before the manifest, because a compaction may end between the two
    manifest = files.manifest()
    if manifest.generation < newest:
        raise files.damaged(MANIFEST, FileNotFoundError("it is missing"))
    return manifest


def _damaged(files: LogFiles, manifest: Manifest) -> Iterator[DamagedFile]:
    for name in (*manifest.rows, *manifest.names, *files.segments(manifest)):
        try:
            for _ in files.read_batches(name, 20_000):
                pass
        except DamagedFile as error:
            yield error
    yield from damaged_registers(files, manifest)
    try:
        complete_since(files)
    except DamagedFile as error:
        yield error


def _in_force(files: LogFiles) -> Manifest:
    """Return a new manifest for the newest complete set of shards. The new manifest lists no segment as merged, so
    readers read all segments again."""
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: {"links": [], "names": []})
    for name in files.listed("shards"):
        if (match := _SHARD.fullmatch(name)) is not None:
            found[int(match[2])][match[1]].append(name)
    for generation in sorted(found, reverse=True):
        rows, names = sorted(found[generation]["links"]), sorted(found[generation]["names"])
        if len(rows) == len(names) and all(int(name[-12:-8]) == place for place, name in enumerate(rows)):
            return Manifest(generation, len(rows), tuple(rows), tuple(names))
    return Manifest()
