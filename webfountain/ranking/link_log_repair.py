"""Repair a link log that has damaged files.

Unreadable files are moved to the folder `damaged` of the log. An empty shard replaces a missing one. If the manifest
is lost, the newest complete set of shards is used again. The rows in damaged files are missing until the next visit of
their pages (`log_completeness`). The ranker repairs a log that it cannot read (`ranker_process`). ``webfountain
check`` reads all of a log and repairs it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from webfountain.ranking.link_files import MANIFEST, NAME, ROW, DamagedFile, LogFiles, Manifest
from webfountain.ranking.log_completeness import complete_since, incomplete_until

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["damaged_files", "mend", "read_files"]

_SHARD: Final = re.compile(r"shards/(links|names)-(\d{6})-(\d{4})\.parquet")


def damaged_files(url: str) -> list[str]:
    """Return a line for each damaged file of a log. It reads the whole log."""
    files = LogFiles(url)
    try:
        manifest = files.manifest()
    except DamagedFile as error:
        return [str(error), *(str(each) for each in _damaged(files, _in_force(files)))]
    return [str(each) for each in _damaged(files, manifest)]


def read_files(url: str) -> int:
    """Return the number of files that a log uses now."""
    files = LogFiles(url)
    manifest = files.manifest()
    return len(manifest.rows) + len(manifest.names) + len(files.segments(manifest))


def mend(url: str, *, at: float) -> list[str]:
    """Set damaged files aside, so that the log can be read. Return a line for each of them. `at` is the present time.

    Raises RepositoryError if a file cannot be read, moved or written for a reason other than damage.
    """
    files = LogFiles(url)
    mended: list[str] = []
    with files.lock():
        try:
            manifest = files.manifest()
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
            incomplete_until(files, at)
    return mended


def _damaged(files: LogFiles, manifest: Manifest) -> Iterator[DamagedFile]:
    for name in (*manifest.rows, *manifest.names, *files.segments(manifest)):
        try:
            for _ in files.read_batches(name, 20_000):
                pass
        except DamagedFile as error:
            yield error
    try:
        complete_since(files)
    except DamagedFile as error:
        yield error


def _in_force(files: LogFiles) -> Manifest:
    """Return a manifest with the newest complete set of shards. Segments that the shards may contain are not listed,
    so they are read again."""
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: {"links": [], "names": []})
    for name in files.listed("shards"):
        if (match := _SHARD.fullmatch(name)) is not None:
            found[int(match[2])][match[1]].append(name)
    for generation in sorted(found, reverse=True):
        rows, names = sorted(found[generation]["links"]), sorted(found[generation]["names"])
        if len(rows) == len(names) and all(int(name[-12:-8]) == place for place, name in enumerate(rows)):
            return Manifest(generation, len(rows), tuple(rows), tuple(names))
    return Manifest()
