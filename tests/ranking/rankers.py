"""Rankers that have carried out a job when they return, and waiting for one that has not."""

from __future__ import annotations

import time

from webfountain.ranking.link_log import compact
from webfountain.ranking.ranker_process import Job, Ranker, carry_out

__all__ = ["AtOnce", "WithShards", "wait_for"]


class AtOnce:
    """Carries out each job at once in this process. `cost_s` is the cost that it reports for each, s."""

    def __init__(self, *, cost_s: float = 0.0) -> None:
        self.jobs: list[Job] = []
        self._cost_s = cost_s

    def start(self, job: Job) -> None:
        self.jobs.append(job)
        carry_out(job)

    def failed(self) -> str | None:
        return None

    def is_busy(self) -> bool:
        return False

    def cost_s(self) -> float:
        return self._cost_s

    def stop(self) -> None:
        """Nothing runs."""


class WithShards(AtOnce):
    """Also compacts the log, so that there are shards to damage."""

    def start(self, job: Job) -> None:
        super().start(job)
        compact(job.links)


def wait_for(ranker: Ranker) -> None:
    """Wait until the ranker's job has ended."""
    end = time.monotonic() + 240
    while ranker.is_busy():
        assert time.monotonic() < end, "the job does not end"
        time.sleep(0.01)
