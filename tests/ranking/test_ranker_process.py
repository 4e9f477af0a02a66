"""The ranker's process stays for the next job of a young crawl, and a failure or a kill costs one ranking at most."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ranking.rankers import wait_for
from webfountain.ranking import ranker_process
from webfountain.ranking.link_log import LinkLog
from webfountain.ranking.ranker_process import Job, RankerProcess
from webfountain.ranking.scores import EpochScores
from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME, OTHER = "http://a.example/", "http://a.example/b"


@pytest.fixture
def ranker() -> Iterator[RankerProcess]:
    made = RankerProcess()
    yield made
    made.stop()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    log = LinkLog(str(tmp_path / "links"), writer="test", at=1.0)
    links = [Link(OTHER, site_of(OTHER), fingerprint(OTHER))]
    log.append(HOME, site_of(HOME), at=1.0, links=links, flags=b"", anchors=None)
    log.close()
    return Job(str(tmp_path / "links"), str(tmp_path / "scores"), at=2.0, newer_than=1e9)


def process_of(ranker: RankerProcess) -> int:
    assert ranker._process is not None
    return ranker._process.pid


def rank(ranker: RankerProcess, job: Job) -> int:
    """Carry out a job, and return the number of the epoch."""
    ranker.start(job)
    wait_for(ranker)
    return EpochScores(Path(job.scores)).epoch


def test_the_next_job_runs_in_the_same_process_and_does_not_pay_for_its_start(ranker: RankerProcess, job: Job) -> None:
    assert rank(ranker, job) == 1
    first, whole = process_of(ranker), ranker.cost_s()
    assert rank(ranker, job) == 2
    assert process_of(ranker) == first
    assert 0.0 < ranker.cost_s() < whole
    assert ranker.failed() is None


def test_a_process_that_was_idle_for_long_ends(
    ranker: RankerProcess, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank(ranker, job)
    first = process_of(ranker)
    assert not ranker.is_busy()
    assert process_of(ranker) == first
    monkeypatch.setattr(ranker_process, "KEPT_S", -1.0)
    assert not ranker.is_busy()
    assert ranker._process is None
    assert rank(ranker, job) == 2


def test_the_process_of_a_long_job_ends_with_it(
    ranker: RankerProcess, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranker_process, "KEPT_BELOW_S", 0.0)
    assert rank(ranker, job) == 1
    assert ranker._process is None


def test_an_idle_process_that_was_killed_is_replaced(ranker: RankerProcess, job: Job) -> None:
    rank(ranker, job)
    os.kill(process_of(ranker), signal.SIGKILL)
    os.waitid(os.P_PID, process_of(ranker), os.WEXITED | os.WNOWAIT)
    assert rank(ranker, job) == 2
    assert ranker.failed() is None


def test_a_failure_is_reported_once_and_the_next_job_begins_anew(
    ranker: RankerProcess, job: Job, tmp_path: Path
) -> None:
    ranker.start(job)
    os.kill(process_of(ranker), signal.SIGKILL)
    wait_for(ranker)
    assert ranker.failed() == "it ended with -9"
    assert ranker.failed() is None
    (tmp_path / "scores").rename(tmp_path / "kept")
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "LOCK").mkdir()
    ranker.start(job)
    wait_for(ranker)
    error = ranker.failed()
    assert error is not None
    assert error.startswith("IsADirectoryError")
    (tmp_path / "scores" / "LOCK").rmdir()
    assert rank(ranker, job) == 1
