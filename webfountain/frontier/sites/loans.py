"""Loans of slots of a very large site: which ant borrows which slots, and until when."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.loans import Loan
    from webfountain.frontier.sites.addresses import AddressGroup
    from webfountain.frontier.sites.politeness import SitePoliteness
    from webfountain.records import SiteState

__all__ = ["LOAN_PAUSE_S", "Loans"]

LOAN_PAUSE_S: Final = 60.0
"""Seconds after a site's rest during which no slots of it are lent, because it refused one of several ants."""


class _LentSlots(NamedTuple):
    """A loan to another ant, and the latest time until which that ant may use it."""

    loan: Loan
    until: float
    is_over: bool = False
    """True if the loan is no longer extended."""


class Loans:
    """The slots of one site that an ant has lent to others.

    Invariant: a lent slot is missing from the gates of the site and its address until `take_back`. That is called
    exactly once for each loan, after the borrower's last message or the end of the term.
    """

    __slots__ = ("_lends_from", "_lent")

    def __init__(self, state: SiteState) -> None:
        self._lent: dict[str, _LentSlots] = {}  # by borrower
        self._lends_from = state.next_at + LOAN_PAUSE_S if state.failures else -inf

    def __len__(self) -> int:
        """Return how many ants have borrowed slots of the site."""
        return len(self._lent)

    def spare(self, standing: SitePoliteness, group: AddressGroup, at: float, *, unused_s: float) -> int:
        """Return how many more slots may be lent: those unused for `unused_s` seconds and at least for the site's
        delay.

        With -inf, all free slots count. One slot stays for the site itself, and none is lent soon after a refusal.
        """
        if at < self._lends_from or standing.failures:
            return 0
        own = standing.gate.in_flight - sum(each.loan.slots for each in self._lent.values())
        since = at - (max(unused_s, standing.delay_s()) if unused_s >= 0.0 else unused_s)
        return min(standing.gate.spare(since), group.gate.spare(since)) - (own <= 0)

    def give(self, loan: Loan, until: float) -> None:
        """Record a loan whose slots were taken from both gates. It lasts until a time that `prolonged` extends."""
        self._lent[loan.borrower] = _LentSlots(loan, until)

    def of(self, borrower: str) -> Loan | None:
        """Return the loan to an ant."""
        lent = self._lent.get(borrower)
        return None if lent is None else lent.loan

    def prolonged(self, until: float) -> list[Loan]:
        """Extend the present loans that may last until a time, and return them."""
        lent = [each.loan for each in self._lent.values() if not each.is_over and each.loan.ends_at > until]
        for loan in lent:
            self._lent[loan.borrower] = _LentSlots(loan, until)
        return lent

    def end(self, loan: Loan) -> None:
        """Mark a loan as no longer extended."""
        if (lent := self._lent.get(loan.borrower)) is not None and lent.loan == loan:
            self._lent[loan.borrower] = lent._replace(is_over=True)

    def recall(self, rests_until: float, batch: Batch) -> None:
        """End all loans after a refusal, and give none for a while after the site's rest.

        The term of a loan does not change: the borrowers learn at their next heartbeat that the loan has ended.
        """
        self._lends_from = max(rests_until, batch.at) + LOAN_PAUSE_S
        for each in list(self._lent.values()):
            self.end(each.loan)
            batch.freed[each.loan.name] = batch.at

    def overdue(self, at: float) -> list[Loan]:
        """Return the loans whose term is over without a message from the borrower."""
        return [each.loan for each in self._lent.values() if each.until <= at]

    def take_back(self, loan: Loan, standing: SitePoliteness, group: AddressGroup, open_at: float) -> None:
        """Give the slots of a loan back to both gates. They open at a time, or later if the site must be left alone."""
        del self._lent[loan.borrower]
        opens = max(open_at, standing.rests_until)
        standing.gate.take_back(loan.slots, opens)
        group.gate.take_back(loan.slots, opens)
