"""Problems that a user must know at the end of a crawl: seeds without a page, and unreachable sites.

They are one document for the report (`--report`), the summary and `status`, made by `report.seeds` and
`report.unreachable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.report.plurals import counted
from webfountain.report.seeds import SeedWithoutPage, seed_lines, seeds_in_force
from webfountain.report.unreachable import Unreachable, unreachable

if TYPE_CHECKING:
    from webfountain.store.contract import FrontierStore

__all__ = ["Troubles", "troubles_of"]


class Troubles(msgspec.Struct, frozen=True):
    """Seeds without a page, and unreachable sites."""

    seeds_without_pages: list[SeedWithoutPage]
    unreachable: Unreachable

    @property
    def failed_seeds(self) -> list[SeedWithoutPage]:
        """Return the seeds that were tried and have no page."""
        return [each for each in self.seeds_without_pages if each.tried]

    def seed_words(self) -> str:
        """Return the failed seeds in one line, or ""."""
        failed = self.failed_seeds
        if not failed:
            return ""
        return f"{counted(len(failed), 'seed')} gave no page: {'; '.join(seed_lines(failed))}"


def troubles_of(store: FrontierStore, *, year: int) -> Troubles:
    """Return the problems in a store; `year` is the present one, for the judge."""
    return Troubles(seeds_in_force(store, year=year), unreachable(store))
