"""Store and log the sites to which seeds redirect.

The examiner finds the sites to which seeds redirect (`Visit.form`), and the judge adds these sites to the scope of the
crawl. A site to which a seed redirects is stored before the seed's page is settled, for other ants and for the next
start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from webfountain.frontier.stage import Stage
from webfountain.frontier.visit import leased
from webfountain.policy.scope import keep_forms, kept_forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.visit import Visit
    from webfountain.policy.judge import Judge
    from webfountain.records import SiteLease
    from webfountain.store.contract import Board

__all__ = ["SeedForms", "SharedSeedForms"]

logger = logging.getLogger(__name__)

MAX_LINES: Final = 20
"""Maximum number of redirected seeds that are each logged in a line of their own."""


class SeedForms(Stage):
    """The stage that stores the sites to which seeds redirect."""

    def __init__(self, board: Board, judge: Judge) -> None:
        self._board = board
        self._judge = judge
        self._lines = 0

    def redirected(self, visits: Sequence[Visit]) -> None:
        """Store and log the sites to which seeds redirect."""
        if forms := {visit.form: visit.fetch.site for visit in visits if visit.form is not None}:
            keep_forms(self._board, forms)
        for visit in visits:
            if visit.form is not None:
                self._say("The seed %s redirects to %s, so %s is in scope", visit, visit.form)
            elif not visit.reading.links and _is_new_seed(visit):
                refused = next(iter(visit.reading.refused), "").removeprefix("judge/").replace("_", " ")
                self._say(
                    "The seed %s redirects to %s, which is refused (%s). To crawl it, add it as a seed", visit, refused
                )

    def _say(self, words: str, visit: Visit, last: str) -> None:
        self._lines += 1
        if self._lines <= MAX_LINES:
            logger.warning(words, visit.fetch.url, visit.target, last)
        elif self._lines == MAX_LINES + 1:
            logger.warning("More seeds redirect; `webfountain pages --state redirected` lists them")


class SharedSeedForms(SeedForms):
    """The stage that stores the sites to which seeds redirect, in a crawl with several ants."""

    def activated(self, leases: list[SiteLease], at: float) -> list[SiteLease]:
        """If an activated site is out of scope, read the redirect targets of seeds that other ants have stored."""
        del at
        if not all(self._judge.is_in_scope(lease.site) for lease in leases):
            self._judge.admit_forms(kept_forms(self._board))
        return leases

    def tidy(self, batch: Batch) -> None:
        """Store the redirect targets of seeds once more, because another ant may have overwritten one."""
        del batch
        keep_forms(self._board, self._judge.forms)


def _is_new_seed(visit: Visit) -> bool:
    record = leased(visit.fetch)
    return record.depth == 0 and record.state == "never-crawled"
