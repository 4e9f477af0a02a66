"""Rankers that have carried out a job when they return."""

from __future__ import annotations

from webfountain.ranking.link_log import compact
from webfountain.ranking.ranker_process import Job, carry_out

__all__ = ["AtOnce", "WithShards"]


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
