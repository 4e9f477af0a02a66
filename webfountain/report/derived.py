"""Check and repair of derived files: link log, scores and indexes of duplicates.

Derived files need no backup: damaged ones are set aside or removed, and the crawl creates them again. This module
reads files only, not the store. ``webfountain check`` calls it together with `report.wholeness.examine_store`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webfountain.duplicates.index_check import damaged_index, mend_index
from webfountain.ranking.link_journal import damaged_journals, mend_journals
from webfountain.ranking.scores import damaged_scores, mend_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DerivedFiles", "DerivedReport"]


class DerivedReport(NamedTuple):
    """The state of the derived files in words, and one line for each damaged file."""

    present: tuple[str, ...]
    damaged: tuple[str, ...]


class DerivedFiles:
    """Where the derived files of one crawl are.

    Parameters
    ----------
    home : the folder of the scores: that of the store or, if the store is on a server, of the repository
    links : the link log, a folder or an fsspec URL
    repository : the folder of copies, with the folders of several ants in it; None: there is none
    """

    def __init__(self, home: Path, links: str, repository: Path | None) -> None:
        self._home = home
        self._links = links
        self._repository = repository

    def examine(self) -> DerivedReport:
        """Read all derived files. Raise RepositoryError or OSError if the disk reports an error."""
        return self._each(_damaged_log, damaged_journals, damaged_scores, damaged_index)

    def mend(self, *, at: float) -> DerivedReport:
        """Set damaged files aside or remove them. No crawl may be running. `at` is the present time."""
        mend_log, mend_rows = partial(_mend_log, at=at), partial(_mend_journals, self._links, at=at)
        return self._each(mend_log, mend_rows, mend_scores, mend_index)

    def _each(
        self,
        of_log: Callable[[str], list[str]],
        of_journals: Callable[[Path], list[str]],
        of_scores: Callable[[Path], list[str]],
        of_index: Callable[[Path], list[str]],
    ) -> DerivedReport:
        present: list[str] = []
        damaged: list[str] = []
        if "://" in self._links or Path(self._links).is_dir() or (self._home / "scores" / "EPOCH").exists():
            present.append("link log")
            damaged += of_log(self._links)
        damaged += of_journals(self._home / "link-journal")
        for scores in (self._home / "scores", self._home / "scores" / "sites"):
            if (scores / "EPOCH").exists():
                present += ["scores"] if scores.name == "scores" else []
                damaged += of_scores(scores)
        for index in self._indices():
            present += [] if "duplicates" in present else ["duplicates"]
            damaged += of_index(index)
        return DerivedReport(tuple(present), tuple(damaged))

    def _indices(self) -> Iterator[Path]:
        if self._repository is not None:
            for folder in (self._repository, *sorted(self._repository.glob("ant-*"))):
                if (folder / "duplicates").is_dir():
                    yield folder / "duplicates"


def _damaged_log(links: str) -> list[str]:
    from webfountain.ranking.log_completeness import damaged_files  # noqa: PLC0415  pyarrow, where there is a log

    return _missing_log(links) or damaged_files(links)


def _mend_log(links: str, *, at: float) -> list[str]:
    from webfountain.ranking.link_files import LogFiles  # noqa: PLC0415
    from webfountain.ranking.log_completeness import incomplete_until, mend  # noqa: PLC0415

    if missing := _missing_log(links):
        incomplete_until(LogFiles(links), at)
    return missing or mend(links, at=at)


def _missing_log(links: str) -> list[str]:
    """Return a line if the folder of a log that was ranked is gone."""
    return [] if "://" in links or Path(links).is_dir() else [f"{links}: damaged: it is missing, but was ranked"]


def _mend_journals(links: str, folder: Path, *, at: float) -> list[str]:
    mended = mend_journals(folder)
    if mended:
        from webfountain.ranking.link_files import LogFiles  # noqa: PLC0415
        from webfountain.ranking.log_completeness import incomplete_until  # noqa: PLC0415

        incomplete_until(LogFiles(links), at)
    return mended
