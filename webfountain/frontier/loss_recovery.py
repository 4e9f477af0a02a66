"""Recovery of an ant after the store went back in time: the ant drops what it learned in the lost life.

Place in the walk: in the worker thread. It runs at the start and at the end of a batch, and again after links were
discovered and before their pages are settled. The store has repaired what it can by itself (`store/shared/lives.py`).
Two things are left to do. The cache of recently sent URLs is emptied, because the store may no longer know these URLs.
And the batch's result lists the sites whose leases ended, so that the active list drops them. They return like any
site that is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.duplicates.url_dedup import DuplicateEliminator
    from webfountain.frontier.batch import BatchResult
    from webfountain.frontier.worker.stage import Stages
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Lives

__all__ = ["LossRecovery", "loss_recovery_of"]


class LossRecovery:
    """The recovery for the store of `lives`."""

    def __init__(self, lives: Lives, due: DuplicateEliminator, stages: Stages) -> None:
        self._lives = lives
        self._due = due
        self._stages = stages

    def apply(self, result: BatchResult) -> bool:
        """Drop what is out of date. Return whether the store went back in time since the last call."""
        found = self._lives.take_set_back()
        if found is None:
            return False
        self._due.begin_anew()
        result.voided |= found.voided
        result.set_backs += 1
        for lost in self._stages.lost:
            lost(sorted(site for site, _ in found.voided))
        return True


def loss_recovery_of(store: FrontierStore, due: DuplicateEliminator, stages: Stages) -> LossRecovery:
    """Return the recovery for a store."""
    return LossRecovery(store.lives, due, stages)
