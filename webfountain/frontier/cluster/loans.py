"""Let ants share a very large site: the ant that holds the site lends slots to other ants. Loans are stored as claims.

Life of a loan
--------------
A gate of a very large site has several slots, and each slot waits for its own delay. Ants that use different slots are
therefore together as polite as one ant alone. The holder of a site lends slots when its core is fully used. The holder
also lends slots when slots stay open although the site's hand has its maximum size.

1. The holder takes slots out of the gates of site and address (`sites.slot_lending`). With each following heartbeat,
   the holder renews the site lease, and then claims ``loan/BORROWER/SITE`` for the same time. The holder stops when the
   borrower is gone.
2. The borrower reads its loans at its heartbeats, which are twice as frequent while it borrows. The borrower has a site
   object of its own. It leases and settles under the holder's token, so if another ant takes the site over, both holder
   and borrower are fenced. The borrower never renews or parks the site, learns nothing about the site, and fetches
   neither robots.txt nor sitemaps. The borrower's term ends with the loan at the
   latest, and its transfers are cut then.
3. When nothing is due at the site or the loan is gone, the borrower waits until none of its fetches is in flight, and
   gives the slots back (`SlotReturn`). The holder waits for this letter, or for the end of the loan as last claimed.
   Until then, the holder does not use these slots, does not park the site and keeps its address.
4. If a borrower dies or does not answer, the holder waits until the loan ends. As soon as nothing is in flight, the
   holder parks the site, which returns the URLs that the borrower had leased. A dead holder renews nothing, so the
   borrower stops before the lease ends.
5. At the first refusal or missing answer, the borrower stops and reports this at once. The holder backs off, recalls
   all loans of the site and lends none for a while. Few requests are sent until the recall takes effect. The holder
   goes on only until it reads the letter (half a second, plus a batch), and other borrowers only until their next
   heartbeat. All of them keep to their slots and delays.

A crawl with a budget, a ranking or a fixed size lends no slots, because it needs a single writer for a site.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.frontier.cluster.ant_notes import ANT, LOAN, strike_off

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.sites.addresses import AddressGroup
    from webfountain.frontier.sites.politeness import SitePoliteness
    from webfountain.records import SiteRecord, SiteState
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["LOAN_PAUSE_S", "BorrowedSlots", "Loan", "LoanClaims", "Loans"]

LOAN_PAUSE_S: Final = 60.0
"""After a refusal, slots of a site are lent only when its back-off is over and this many more seconds have passed."""


class Loan(msgspec.Struct, frozen=True, array_like=True):
    """Slots of a site that one ant lends to another ant, as the note of the claim ``loan/BORROWER/SITE``."""

    site: str
    borrower: str
    token: int
    """Fencing token of the holder's site lease."""
    address: str
    slots: int
    opens_at: float
    """The borrower may send no request before this time, UTC seconds."""
    ends_at: float
    """The loan is not extended beyond this time, UTC seconds."""

    @property
    def name(self) -> str:
        """Name of the claim on the lent slots."""
        return f"{LOAN}{self.borrower}/{self.site}"


class BorrowedSlots(NamedTuple):
    """Slots that another ant lends to this ant, until the time `until`."""

    loan: Loan
    holder: str
    until: float
    record: SiteRecord | None
    """The site's record, or None if the caller already knows the site or the store no longer has it."""


class LoanClaims:
    """Extends and reads loans, which are claims in the store. An ant holds claims on the slots that it lends, and reads
    the claims on slots that it borrows.
    """

    def __init__(self, store: FrontierStore, claims: Claims, *, owner: str) -> None:
        self._store = store
        self._claims = claims
        self._owner = owner

    def prolong(self, loans: Sequence[Loan], sites: set[str], *, until: float, at: float) -> list[Loan]:
        """Extend each loan to a running ant if the loan's site is in `sites`. Return the loans that were not
        extended.
        """
        if not loans:
            return []
        lives = self._claims.holders([f"{ANT}{loan.borrower}" for loan in loans], at=at)
        given = [
            loan
            for loan, ant in zip(loans, lives, strict=True)
            if ant is not None and loan.site in sites and loan.ends_at > at
        ]
        notes = {loan.name: msgspec.msgpack.encode(loan) for loan in given}
        self._claims.claim(list(notes), owner=self._owner, until=until, at=at, notes=notes)
        return [loan for loan in loans if loan not in given]

    def borrowed(self, known: frozenset[str], *, at: float) -> list[BorrowedSlots]:
        """Read which slots other ants lend to this ant. For sites in `known`, no site record is read."""
        found = []
        for claim in self._claims.claims("loan"):
            if claim.until <= at:
                strike_off(self._claims, claim, owner=self._owner, at=at)
            elif claim.name.startswith(f"{LOAN}{self._owner}/") and claim.owner:
                loan = msgspec.msgpack.decode(claim.note, type=Loan)
                record = None if loan.site in known else self._store.sites.get(loan.site)
                found.append(BorrowedSlots(loan, claim.owner, claim.until, record))
        return found


class _LentSlots(NamedTuple):
    """A loan to another ant, which may use the slots until the time `until`."""

    loan: Loan
    until: float
    is_over: bool = False
    """True if the loan must not be extended again."""


class Loans:
    """The slots of one site that its holder lends to other ants.

    The gates of the site and of its address lack lent slots until `take_back` is called, once for each loan.
    """

    __slots__ = ("_lends_from", "_lent")

    def __init__(self, state: SiteState) -> None:
        self._lent: dict[str, _LentSlots] = {}  # by borrower
        self._lends_from = state.next_at + LOAN_PAUSE_S if state.failures else -inf

    def __len__(self) -> int:
        """Return the number of ants that borrow slots."""
        return len(self._lent)

    def spare(self, standing: SitePoliteness, group: AddressGroup, at: float, *, unused_s: float) -> int:
        """Return how many more slots may be lent. A slot may be lent if it was unused for the longer of `unused_s`
        seconds and the site's delay.

        If `unused_s` is -inf, all free slots may be lent, except one that the holder keeps. For a while after a site
        refused a request, none of its slots may be lent.
        """
        if at < self._lends_from or standing.failures:
            return 0
        own = standing.gate.in_flight - sum(each.loan.slots for each in self._lent.values())
        since = at - (max(unused_s, standing.delay_s()) if unused_s >= 0.0 else unused_s)
        return min(standing.gate.spare(since), group.gate.spare(since)) - (own <= 0)

    def give(self, loan: Loan, until: float) -> None:
        """Record a loan that ends at `until`. The caller must first take the slots from the gates of the site and of
        its address.
        """
        self._lent[loan.borrower] = _LentSlots(loan, until)

    def of(self, borrower: str) -> Loan | None:
        """Return the loan that one ant has, or None."""
        lent = self._lent.get(borrower)
        return None if lent is None else lent.loan

    def prolonged(self, until: float) -> list[Loan]:
        """Extend each loan to `until`, unless it must end by then (`ends_at`). Return the extended loans."""
        lent = [each.loan for each in self._lent.values() if not each.is_over and each.loan.ends_at > until]
        for loan in lent:
            self._lent[loan.borrower] = _LentSlots(loan, until)
        return lent

    def end(self, loan: Loan) -> None:
        """Record that a loan must not be extended again."""
        if (lent := self._lent.get(loan.borrower)) is not None and lent.loan == loan:
            self._lent[loan.borrower] = lent._replace(is_over=True)

    def recall(self, rests_until: float, batch: Batch) -> None:
        """End all loans because the site refused a request. The site's slots are not lent again until `LOAN_PAUSE_S`
        seconds after `rests_until`.

        Borrowers read at their next heartbeat that their loans have ended.
        """
        self._lends_from = max(rests_until, batch.at) + LOAN_PAUSE_S
        for each in list(self._lent.values()):
            self.end(each.loan)
            batch.freed[each.loan.name] = batch.at

    def overdue(self, at: float) -> list[Loan]:
        """Return the loans that have ended although the borrower has not returned the slots."""
        return [each.loan for each in self._lent.values() if each.until <= at]

    def take_back(self, loan: Loan, standing: SitePoliteness, group: AddressGroup, open_at: float) -> None:
        """Give the slots of a loan back to the gates of the site and of its address. The slots open at `open_at`, or at
        the end of the site's back-off if this is later.
        """
        del self._lent[loan.borrower]
        opens = max(open_at, standing.rests_until)
        standing.gate.take_back(loan.slots, opens)
        group.gate.take_back(loan.slots, opens)
