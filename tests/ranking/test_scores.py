"""Epochs of scores: one or the other holds, and a batch is looked up."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from webfountain.errors import RepositoryError
from webfountain.ranking.scores import EpochScores, publish_scores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEYS = np.unique(np.random.default_rng(1).integers(0, 2**64 - 1, 1000, dtype=np.uint64))


def test_a_batch_is_read_and_unknown_pages_have_the_score_of_the_absent(tmp_path: Path) -> None:
    publish_scores(
        tmp_path, KEYS, {"pagerank": np.arange(1, len(KEYS) + 1, dtype=np.float64), "trust": np.zeros(len(KEYS))}
    )
    held = EpochScores(tmp_path)
    assert (held.names, len(held), held.epoch) == (("pagerank", "trust"), len(KEYS), 1)
    asked = np.concatenate([KEYS[::-7], KEYS[:5] + np.uint64(1), np.array([0, 2**64 - 1], dtype=np.uint64)])
    expected = [float(np.flatnonzero(key == KEYS)[0]) + 1.0 if key in KEYS else -1.0 for key in asked]
    assert held.lookup("pagerank", asked, absent=-1.0).tolist() == expected
    with pytest.raises(KeyError):
        held.lookup("depth", asked)


def test_a_sample_of_the_waiting_pages_has_no_score_that_a_damaged_disk_may_return(tmp_path: Path) -> None:
    ranks, crawled = np.arange(1, 1001, dtype=np.float64), np.arange(1000) % 4 == 0
    ranks[[1, 2, 3]] = np.nan, np.inf, -np.inf
    publish_scores(tmp_path, KEYS, {"pagerank": ranks, "crawled": crawled.astype(np.float64)})
    held = EpochScores(tmp_path)
    assert held.count_crawled() == 250
    waiting, [sample] = held.waiting(("pagerank",), most=1000)
    assert (waiting, sample.tolist()) == (747, ranks[~crawled][3:].tolist())
    waiting, [sample] = held.waiting(("pagerank",), most=100)
    assert len(sample) <= 100
    assert set(sample.tolist()) <= set(ranks[~crawled].tolist())


@pytest.mark.parametrize("name", ["fingerprints", "score-pagerank", "score-crawled"])
def test_scores_that_are_cut_while_they_are_used_are_dropped_and_end_no_process(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A backup that is copied over a file empties it first; to read behind its end is a SIGBUS."""
    publish_scores(tmp_path, KEYS, {"pagerank": np.ones(len(KEYS)), "crawled": np.ones(len(KEYS))})

    calls: list[Callable[[EpochScores], bool]] = [
        lambda held: held.lookup("pagerank", KEYS, absent=0.5).tolist() == [0.5] * len(KEYS),
        lambda held: held.waiting(("pagerank",), most=100)[0] == 0,
        lambda held: held.count_crawled() == 0,
    ]

    def use() -> None:
        for call in calls:
            caplog.clear()
            publish_scores(tmp_path, KEYS, {"pagerank": np.ones(len(KEYS)), "crawled": np.ones(len(KEYS))})
            held = EpochScores(tmp_path)
            os.truncate(tmp_path / f"epoch-{held.epoch:08d}" / f"{name}.npy", 100)
            assert call(held)
            assert call(held)
            assert (held.epoch, len(held), held.refresh()) == (0, 0, False)
            [line] = caplog.messages
            assert f"{name}.npy was cut" in line
        publish_scores(tmp_path, KEYS, {"pagerank": np.ones(len(KEYS))})
        assert held.refresh()
        assert held.lookup("pagerank", KEYS).tolist() == [1.0] * len(KEYS)

    process = multiprocessing.get_context("fork").Process(target=use)
    process.start()
    process.join()
    assert process.exitcode == 0


def test_before_the_first_epoch_every_page_is_absent(tmp_path: Path) -> None:
    assert EpochScores(tmp_path / "none").lookup("pagerank", KEYS[:2], absent=0.5).tolist() == [0.5, 0.5]


def test_a_reader_keeps_its_epoch_until_it_refreshes(tmp_path: Path) -> None:
    publish_scores(tmp_path, KEYS, {"pagerank": np.full(len(KEYS), 1.0)})
    held = EpochScores(tmp_path)
    publish_scores(tmp_path, KEYS[:10], {"pagerank": np.full(10, 2.0)})
    assert held.lookup("pagerank", KEYS[:1]).tolist() == [1.0]
    assert held.refresh()
    assert not held.refresh()
    assert held.lookup("pagerank", KEYS[[0, 10]]).tolist() == [2.0, 0.0]
    publish_scores(tmp_path, KEYS, {"pagerank": np.full(len(KEYS), 3.0)})
    assert sorted(each.name for each in tmp_path.glob("epoch-*")) == ["epoch-00000002", "epoch-00000003"]


def _publish_until(folder: Path, calls: int) -> None:
    """A publication that is killed at its n-th fsync."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal calls
        if not calls:
            os.kill(os.getpid(), signal.SIGKILL)
        calls -= 1
        real(descriptor)

    pytest.MonkeyPatch().setattr(os, "fsync", fsync)
    publish_scores(folder, KEYS, {"pagerank": np.full(len(KEYS), 2.0)})


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_killed_in_the_middle_the_old_or_the_new_epoch_holds(tmp_path: Path, calls: int) -> None:
    publish_scores(tmp_path, KEYS, {"pagerank": np.full(len(KEYS), 1.0)})
    process = multiprocessing.get_context("fork").Process(target=_publish_until, args=(tmp_path, calls))
    process.start()
    process.join()
    held = EpochScores(tmp_path)
    assert set(held.lookup("pagerank", KEYS).tolist()) == {2.0 if process.exitcode == 0 else 1.0}
    assert (process.exitcode == 0) == (calls == 3)
    publish_scores(tmp_path, KEYS, {"pagerank": np.full(len(KEYS), 3.0)})
    assert held.refresh()
    assert set(held.lookup("pagerank", KEYS).tolist()) == {3.0}


def test_what_is_no_ranking_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ascend"):
        publish_scores(tmp_path, KEYS[::-1], {})
    with pytest.raises(ValueError, match="one value"):
        publish_scores(tmp_path, KEYS, {"pagerank": np.zeros(3)})
    (tmp_path / "file").write_text("")
    with pytest.raises(RepositoryError, match="file"):
        publish_scores(tmp_path / "file", KEYS, {})
