"""The published scores of pages. An epoch is a folder of arrays: sorted fingerprints, and the scores of their pages.

The file `EPOCH`, which is written last, names the current epoch. A reader sees either the old or the new epoch, even
after a kill. The previous epoch is kept for readers that have not called `refresh` yet.
"""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from math import inf, isfinite
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from webfountain.core.order_blend import ORDERS
from webfountain.errors import RepositoryError
from webfountain.private_files import is_cut, private, replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Fingerprints = npt.NDArray[np.uint64]

__all__ = [
    "EpochScores",
    "Fingerprints",
    "damaged_scores",
    "last_replay",
    "mend_scores",
    "places",
    "publish_scores",
    "published_at",
]

UNREADABLE: Final = (EOFError, SyntaxError, TokenError, TypeError, KeyError, OverflowError, MemoryError)
"""Errors that numpy raises for a damaged array file, in addition to ValueError."""

logger = logging.getLogger(__name__)

_NAME: Final = "EPOCH"
_WORDS: Final = 100
"""Maximum length of an error text in a message, characters."""


def publish_scores(
    folder: Path,
    fingerprints: Fingerprints,
    scores: Mapping[str, npt.NDArray[np.float64]],
    *,
    at: float = 0.0,
    links: int = 0,
    replayed: int = 0,
    losses: Sequence[float] = (),
) -> int:
    """Publish scores of pages as the next epoch, and return its number.

    Parameters
    ----------
    fingerprints : (n,) fingerprints of the pages, strictly ascending
    scores : (n,) values relative to the mean, by name as in a policy's `score`; they are stored in single precision
    at : time of the ranking, UTC seconds
    links : number of counted links
    replayed, losses : number of pages in the last replay, and sums of the losses of orders (`core.order_replay`)

    Raises
    ------
    ValueError
        if the fingerprints do not ascend, or a score has another length.
    RepositoryError
        if the folder cannot be written; then the current epoch stays.
    """
    if len(fingerprints) > 1 and not (fingerprints[1:] > fingerprints[:-1]).all():
        raise ValueError("fingerprints must ascend strictly")
    if any(each.shape != fingerprints.shape for each in scores.values()):
        raise ValueError(f"scores must have one value for each of the {len(fingerprints)} fingerprints")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        last = max(_epoch(folder).number, _newest(folder))
        made = folder / f"epoch-{last + 1:08d}"
        for each in folder.glob("epoch-*"):
            # Remove the rest of a killed publication, and epochs before the previous one.
            if each.name != f"epoch-{last:08d}":
                shutil.rmtree(each)
        made.mkdir(mode=0o700)
        _save(made / "fingerprints.npy", fingerprints.astype(np.uint64, copy=False))
        for name, values in scores.items():
            _save(made / f"score-{name}.npy", values.astype(np.float32))
        with replaced(folder / _NAME, durable=True) as file:
            file.write(f"{last + 1} {at!r} {links} {','.join(sorted(scores))} {replayed}".encode())
            file.write("".join(f",{each!r}" for each in losses).encode())
    except OSError as error:
        raise RepositoryError(f"{folder}: scores cannot be published: {error}") from error
    return last + 1


def published_at(folder: Path) -> float:
    """Return the time of the current ranking, UTC seconds, or -inf before the first ranking. Raise RepositoryError if
    the file `EPOCH` cannot be read."""
    return _epoch(folder).at


class EpochScores:
    """The scores of the newest epoch, as of the last `refresh`. Before the first ranking, the epoch is 0 and there are
    no pages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.epoch = 0
        self.at = -inf
        """Time of the ranking, UTC seconds."""
        self.links = 0
        """Number of links that the ranking counted."""
        self.losses: tuple[float, ...] = ()
        """Total loss of each crawl order in all comparisons (`core.order_replay`), or () before the first comparison.
        """
        self._fingerprints: Fingerprints = np.zeros(0, dtype=np.uint64)
        self._scores: dict[str, npt.NDArray[np.float32]] = {}
        self._sizes: dict[Path, int] = {}
        self.refresh()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._scores)

    def __len__(self) -> int:
        return len(self._fingerprints)

    def refresh(self) -> bool:
        """Load the newest epoch, and return whether the epoch has changed."""
        epoch = _epoch(self._folder)
        if epoch.number == self.epoch:
            return False
        made = self._folder / f"epoch-{epoch.number:08d}"
        try:
            sizes = {path: path.stat().st_size for path in made.iterdir()}
            arrays = _loaded(made, epoch.names)
        except (FileNotFoundError, ValueError) as error:
            _set_aside(self._folder, error)
            return False
        except OSError as error:
            raise RepositoryError(f"{made}: scores cannot be read: {error}") from error
        self._fingerprints, self._scores, self._sizes = arrays.pop("fingerprints"), arrays, sizes
        self.epoch, self.at, self.links, self.losses = epoch.number, epoch.at, epoch.links, epoch.losses
        return True

    def lookup(self, name: str, fingerprints: Fingerprints, *, absent: float = 0.0) -> npt.NDArray[np.float64]:
        """Return the (k,) scores of pages.

        A page without a score gets the value `absent`.

        Raises KeyError for an unknown name of a score.
        """
        if self.epoch and name not in self._scores:
            raise KeyError(name)
        [found] = self.lookup_several({name: absent}, fingerprints)
        return found

    def lookup_several(self, absent: Mapping[str, float], fingerprints: Fingerprints) -> list[npt.NDArray[np.float64]]:
        """Return the (k,) scores of pages, one array for each name of a score in `absent`.

        For a page that the ranking does not know, `absent` gives the value of each score.

        If 10^7 pages are ranked, the lookup of one page takes some microseconds.
        """
        found = [np.full(len(fingerprints), each) for each in absent.values()]
        if not self._is_whole():
            return found
        at = places(self._fingerprints, fingerprints)
        known = self._fingerprints[np.minimum(at, len(self) - 1)] == fingerprints
        at = at[known]
        for values, name in zip(found, absent, strict=True):
            if name in self._scores:
                read = self._scores[name][at]
                values[known] = np.where(np.isfinite(read), read, absent[name])  # a damaged disk may return anything
        return found

    def waiting(self, names: Sequence[str], *, most: int) -> tuple[int, list[npt.NDArray[np.float64]]]:
        """Return the estimated number of ranked pages that were never crawled, and the scores (s,) of a sample of them.

        The sample is drawn from at most `most` ranked pages.
        """
        if not self._is_whole():
            return 0, [np.zeros(0) for _ in names]
        chosen = slice(None, None, max(1, -(-len(self) // most)))
        drawn = np.array([self._scores[name][chosen] for name in names], dtype=np.float64)
        waits = (self._scores["crawled"][chosen] == 0) & np.isfinite(drawn).all(axis=0)  # a damaged disk, see `lookup`
        scale = len(self) / max(len(waits), 1)
        return round(scale * np.count_nonzero(waits)), list(drawn[:, waits])

    def count_crawled(self) -> int:
        """Return how many of the ranked pages had been crawled."""
        return int(np.count_nonzero(self._scores["crawled"])) if self._is_whole() and "crawled" in self._scores else 0

    def _is_whole(self) -> bool:
        """Return whether scores can be read. If a file was truncated, forget all scores, because reading the mapped
        file would crash the process."""
        cut = next((path for path, size in self._sizes.items() if is_cut(path, size)), None)
        if cut is not None:
            _set_aside(self._folder, ValueError(f"{cut.name} was cut"))
            self.epoch, self._fingerprints, self._scores, self._sizes = 0, np.zeros(0, dtype=np.uint64), {}, {}
        return len(self) > 0


def places(pages: Fingerprints, wanted: Fingerprints) -> npt.NDArray[np.int64]:
    """Return for each fingerprint its position in the ascending `pages`, or the position where it would be inserted."""
    order = np.argsort(wanted)  # a search in ascending order takes less than half the time
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.searchsorted(pages, wanted[order])
    return found


class _Epoch(NamedTuple):
    """The contents of the file `EPOCH`: the number of the current epoch and facts about its ranking. Before the first
    ranking, `number` is 0.
    """

    number: int = 0
    at: float = -inf
    links: int = 0
    names: tuple[str, ...] = ()
    replayed: int = 0
    losses: tuple[float, ...] = ()


def last_replay(folder: Path) -> tuple[int, tuple[float, ...]]:
    """Return the number of pages in the last comparison of crawl orders, and the total loss of each order."""
    epoch = _epoch(folder)
    return epoch.replayed, epoch.losses


def _epoch(folder: Path) -> _Epoch:
    """Read the file `EPOCH`. If the file is damaged, set it aside and return epoch 0."""
    try:
        return _read_epoch((folder / _NAME).read_text(encoding="ascii"))
    except FileNotFoundError:
        return _Epoch()
    except ValueError as error:
        _set_aside(folder, error)
        return _Epoch()
    except OSError as error:
        raise RepositoryError(f"{folder / _NAME}: {error}") from error


def _read_epoch(text: str) -> _Epoch:
    """Parse an epoch file. Raise ValueError if the file is invalid."""
    number, at, *rest = text.split(" ")
    links = int(rest[0]) if rest else 0
    names = tuple(rest[1].split(",")) if len(rest) > 1 and rest[1] else ()
    replayed, *losses = rest[2].split(",") if len(rest) > 2 else ["0"]
    found = _Epoch(int(number), float(at), links, names, int(replayed), tuple(map(float, losses)))
    if found.number < 1 or not isfinite(found.at) or found.links < 0:
        raise ValueError(f"no epoch: {text[:40]}")
    if len(losses) not in (0, len(ORDERS)) or not all(map(isfinite, found.losses)):
        raise ValueError(f"no losses of {len(ORDERS)} orders: {rest[2][:40]}")
    return found


def _set_aside(folder: Path, error: Exception) -> None:
    """Rename the file `EPOCH`, so that damaged scores are not used again. The next ranking publishes new scores."""
    with suppress(OSError):  # the folder may be read-only
        os.replace(folder / _NAME, folder / f"{_NAME}.damaged")
    words = " ".join(str(error).split())[:_WORDS]
    logger.warning("%s: damaged (%s): set aside until the next ranking", folder / _NAME, words)


def _newest(folder: Path) -> int:
    """Return the number of the newest epoch on disk, or 0 if there is none."""
    found = (each.name.removeprefix("epoch-") for each in folder.glob("epoch-*"))
    return max((int(number) for number in found if number.isdecimal()), default=0)


def damaged_scores(folder: Path) -> list[str]:
    """Read all files of the current epoch, and return a line of text if one is damaged."""
    path = folder / _NAME
    if not path.exists():
        return []
    try:
        epoch = _read_epoch(path.read_text(encoding="ascii"))
    except (ValueError, OSError) as error:
        return [f"{path}: damaged: {' '.join(str(error).split())[:_WORDS]}"]
    made = folder / f"epoch-{epoch.number:08d}"
    try:
        arrays = _loaded(made, epoch.names)
        prints = arrays.pop("fingerprints")
        if len(prints) > 1 and not (prints[1:] > prints[:-1]).all():
            raise ValueError("the fingerprints do not ascend")
        if any(not np.isfinite(each).all() for each in arrays.values()):
            raise ValueError("a score is not a number")
    except (OSError, ValueError) as error:
        return [f"{made}: damaged: {' '.join(str(error).split())[:_WORDS]}"]
    return []


def mend_scores(folder: Path) -> list[str]:
    """Set damaged scores aside, and return a line of text about the damage."""
    found = damaged_scores(folder)
    if found:
        with suppress(FileNotFoundError):
            os.replace(folder / _NAME, folder / f"{_NAME}.damaged")
    return found


def _loaded(made: Path, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Map the arrays of an epoch into memory.

    Raises ValueError if the files do not fit together, or FileNotFoundError if a file is missing.
    """
    try:
        return _checked(made, names)
    except UNREADABLE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _checked(made: Path, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    files = [made / "fingerprints.npy", *sorted(made.glob("score-*.npy"))]
    arrays = {each.stem.removeprefix("score-"): np.asarray(np.lib.format.open_memmap(each, mode="r")) for each in files}
    if missing := set(names) - arrays.keys():
        raise ValueError(f"the scores {sorted(missing)} are missing")
    count = len(arrays["fingerprints"])
    for name, values in arrays.items():
        wanted = np.uint64 if name == "fingerprints" else np.float32
        if values.dtype != wanted or values.shape != (count,):
            raise ValueError(f"{name} is {values.dtype} of shape {values.shape}, not {np.dtype(wanted)} of ({count},)")
    return arrays


def _save(path: Path, values: npt.NDArray[np.uint64] | npt.NDArray[np.float32]) -> None:
    with private(path) as file:
        np.save(file, values)
        file.flush()
        os.fsync(file.fileno())
