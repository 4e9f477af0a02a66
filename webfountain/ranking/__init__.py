"""Which pages matter by their links: what is logged, how it is ranked, how scores reach the crawl.

Life of a link
--------------
A page is fetched; its outlinks, known targets and those that nobody follows too, become one row of the link log
(`link_log`), which replaces the page's older row when the log is compacted. The ranker (`ranker`), a process of its own
beside the crawl, reads the compacted shards, turns them into in-links on disk and ranks all pages, also those that no
one has fetched. The scores are published as an epoch, sorted files that the crawl maps into memory and looks up in
batches; no record of the store is touched. Until the next epoch `core.rank.OnlineImportance` credits what is fetched.

An epoch is a folder of arrays: sorted fingerprints and their scores. It is written as a whole before the file `EPOCH`
is replaced to name it, so that a reader has the old epoch or the new one, whatever was killed. The crawl `refresh`es
when it may wait for a file's name. The epoch before the last is kept for readers that have not refreshed yet.
"""

from __future__ import annotations

__all__ = ["FOLLOWED", "NOFOLLOW", "REDIRECT", "UNFOLLOWED", "EpochScores", "publish_scores", "published_at"]

import os
import shutil
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.errors import RepositoryError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    Fingerprints = npt.NDArray[np.uint64]

_NAME: Final = "EPOCH"

FOLLOWED: Final = 0
NOFOLLOW: Final = 1
REDIRECT: Final = 2
UNFOLLOWED: Final = 4
"""Flags of a link; they add up. NOFOLLOW: the page's author says not to follow it, and the crawl honours that.
UNFOLLOWED: the policy refuses it, or the page repeats another whose links are followed."""


def publish_scores(
    folder: Path,
    fingerprints: Fingerprints,
    scores: Mapping[str, npt.NDArray[np.float64]],
    *,
    at: float = 0.0,
    links: int = 0,
) -> int:
    """Publish scores of pages as the next epoch; its number.

    Parameters
    ----------
    fingerprints : (n,) strictly ascending
    scores : name, as in a policy's `score` -> (n,) relative to the mean; kept in single precision
    at : time of the ranking, UTC seconds
    links : that were counted

    Raises
    ------
    ValueError
        when the fingerprints do not ascend, or a score has another length.
    RepositoryError
        when the folder cannot be written; the epoch in force stays.
    """
    if len(fingerprints) > 1 and not (fingerprints[1:] > fingerprints[:-1]).all():
        raise ValueError("fingerprints must ascend strictly")
    if any(each.shape != fingerprints.shape for each in scores.values()):
        raise ValueError(f"scores must have one value for each of the {len(fingerprints)} fingerprints")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        last = _epoch(folder).number
        made = folder / f"epoch-{last + 1:08d}"
        for each in folder.glob("epoch-*"):
            # A killed publication's, and those before the last.
            if each.name != f"epoch-{last:08d}":
                shutil.rmtree(each)
        made.mkdir()
        _save(made / "fingerprints.npy", fingerprints.astype(np.uint64, copy=False))
        for name, values in scores.items():
            _save(made / f"score-{name}.npy", values.astype(np.float32))
        new = folder / f"{_NAME}.new"
        with new.open("w") as file:
            file.write(f"{last + 1} {at!r} {links}")
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, folder / _NAME)
    except OSError as error:
        raise RepositoryError(f"{folder}: scores cannot be published: {error}") from error
    return last + 1


def published_at(folder: Path) -> float:
    """Time of the ranking in force, UTC seconds; -inf before the first. RepositoryError when that cannot be read."""
    return _epoch(folder).at


class EpochScores:
    """The scores in force when it was opened or last refreshed; epoch 0, which knows no page, before the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.epoch = 0
        self.at = -inf
        """Time of the ranking, UTC seconds."""
        self.links = 0
        """Links that it counted."""
        self._fingerprints: Fingerprints = np.zeros(0, dtype=np.uint64)
        self._scores: dict[str, npt.NDArray[np.float32]] = {}
        self.refresh()

    @property
    def names(self) -> tuple[str, ...]:
        """What there is of each page."""
        return tuple(self._scores)

    def __len__(self) -> int:
        return len(self._fingerprints)

    def refresh(self) -> bool:
        """Take a newer epoch, when there is one; True then. A publication that goes on at the time is no matter."""
        epoch = _epoch(self._folder)
        if epoch.number == self.epoch:
            return False
        made = self._folder / f"epoch-{epoch.number:08d}"
        try:
            # Plain views: each step on a memmap would make another one.
            fingerprints = np.asarray(np.load(made / "fingerprints.npy", mmap_mode="r"))
            scores = {
                each.stem.removeprefix("score-"): np.asarray(np.load(each, mmap_mode="r"))
                for each in sorted(made.glob("score-*"))
            }
        except (OSError, ValueError) as error:
            raise RepositoryError(f"{made}: scores cannot be read: {error}") from error
        self._fingerprints, self._scores = fingerprints, scores
        self.epoch, self.at, self.links = epoch
        return True

    def lookup(self, name: str, fingerprints: Fingerprints, *, absent: float = 0.0) -> npt.NDArray[np.float64]:
        """(k,) a score of the pages with these fingerprints (k,), `absent` for those that were not ranked.

        A bisection of the mapped file a page, some microseconds at 10^7. KeyError for another name.
        """
        scores = self._scores[name] if self.epoch else np.zeros(0, dtype=np.float32)
        found = np.full(len(fingerprints), absent)
        if not len(scores):
            return found
        at = self._places(fingerprints)
        known = self._fingerprints[np.minimum(at, len(scores) - 1)] == fingerprints
        found[known] = scores[at[known]]
        return found

    def _places(self, fingerprints: Fingerprints) -> npt.NDArray[np.int64]:
        """Where each stands or would stand; in order, for then neighbours in the file are asked one after the other."""
        order = np.argsort(fingerprints)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.searchsorted(self._fingerprints, fingerprints[order])
        return places


class _Epoch(NamedTuple):
    """The one in force: its number (0: there is none), its ranking's time, and how many links that counted."""

    number: int = 0
    at: float = -inf
    links: int = 0


def _epoch(folder: Path) -> _Epoch:
    try:
        number, at, *links = (folder / _NAME).read_text().split()
        return _Epoch(int(number), float(at), *map(int, links[:1]))
    except FileNotFoundError:
        return _Epoch()
    except (OSError, ValueError) as error:
        raise RepositoryError(f"{folder / _NAME}: {error}") from error


def _save(path: Path, values: npt.NDArray[np.uint64] | npt.NDArray[np.float32]) -> None:
    with path.open("wb") as file:
        np.save(file, values)
        file.flush()
        os.fsync(file.fileno())
