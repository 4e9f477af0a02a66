"""Lend slots of very large sites to other ants, and borrow slots from them ("Life of a loan", `cluster.loans`).

Ants lend slots at their heartbeats. The lender takes the slots out of the gates of the site and of its address. The
borrower adds the site to its own active list, with the borrowed slots and the lender's site lease.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.batch import remembered
from webfountain.frontier.cluster.ant_notes import BUSY
from webfountain.frontier.cluster.loans import Loan, Loans
from webfountain.frontier.inbox.notes import SlotReturn
from webfountain.frontier.sites.site import ActiveSite, State
from webfountain.records import SiteLease, SiteState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.cluster.loans import BorrowedSlots
    from webfountain.frontier.cluster.membership import Membership
    from webfountain.frontier.sites.addresses import Addresses
    from webfountain.frontier.sites.site_context import SiteContext
    from webfountain.frontier.sites.site_table import SiteTable
    from webfountain.records import FetchResult, SiteRecord

__all__ = ["LOAN_BEATS", "SlotLending"]

LOAN_BEATS: Final = 120
"""Longest duration of a loan, in heartbeats."""
_UNUSED_S: Final = 0.05
"""A slot counts as unused if it has been open for the longer of this time, in seconds, and the site's delay."""


class SlotLending:
    """The slots that one ant lends and borrows."""

    def __init__(
        self,
        context: SiteContext,
        sites: SiteTable,
        addresses: Addresses,
        others: Membership,
    ) -> None:
        self._context = context
        self._sites = sites
        self._addresses = addresses
        self._others = others
        self._loans: dict[str, Loans] = {}  # by name of a site that has had slots to lend
        self._borrowed: dict[str, BorrowedSlots] = {}
        self._given_back: set[Loan] = set()

    # ---------------------------------------------------------------- as holder

    def lend(self, at: float) -> None:
        """Lend slots in equal parts to ants with little work. Sites with the most spare slots lend before other sites.

        An ant whose CPU core is busy lends any free slot. An ant with spare CPU time lends only slots that it does not
        use.
        """
        others = self._others
        borrowers = [ant for ant in others.colony.free if ant != others.owner]
        if not borrowers:
            return
        unused_s = -inf if others.load.share > BUSY else _UNUSED_S
        until, ends_at = at + others.lease_s, at + LOAN_BEATS * others.heartbeat_s
        spare = {site.name: many for site in self._sites if (many := self._spare(site, at, unused_s=unused_s)) > 0}
        for name in sorted(spare, key=lambda name: (-spare[name], name)):
            site, left = self._sites.by_name[name], spare[name]
            for borrower in borrowers:
                slots = min(left, max(1, spare[name] // (len(borrowers) + 1)))
                if slots and self._loans[name].of(borrower) is None:
                    self._lend(site, borrower, slots, until=until, ends_at=ends_at)
                    left -= slots
                    self._context.metrics.inc("ant/loans_given")

    def _spare(self, site: ActiveSite, at: float, *, unused_s: float) -> int:
        """Return how many slots a site could lend. A site with few waiting pages, or at a shared address, lends no
        slots.
        """
        place = site.place
        group = place.group
        if group is None or len(group.places) > 1 or place.fallbacks or group.is_lent or group.is_leaving:
            return 0
        is_well = site.state is State.OPEN and not site.is_empty() and site.pages.barred is None and group.is_ours
        if not is_well or site.lease is None or not site.hand.is_deep() or site.files.lacks_robots(at):
            return 0
        if site.name not in self._loans:
            self._loans[site.name] = Loans(remembered(site.lease.record))
        return self._loans[site.name].spare(site.standing, group, at, unused_s=unused_s)

    def _lend(self, site: ActiveSite, borrower: str, slots: int, *, until: float, ends_at: float) -> None:
        """Lend slots of a site to another ant until `until`. The loan may be extended later, up to `ends_at`."""
        assert site.lease is not None
        group = site.place.group
        assert group is not None
        opens_at = max(gate.lend(slots, until=until) for gate in (site.standing.gate, group.gate))
        loan = Loan(site.name, borrower, site.lease.token, group.address, slots, opens_at, ends_at)
        self._loans[site.name].give(loan, until)

    def prolonged(self, until: float) -> list[Loan]:
        """Extend each loan to `until`, unless it must end by then (`ends_at`). Return the extended loans."""
        return [loan for name in self._loans for loan in self._prolonged(name, until)]

    def _prolonged(self, name: str, until: float) -> list[Loan]:
        site, loans = self._sites.by_name[name], self._loans[name]
        group = site.place.group
        if not loans or group is None or group.is_leaving:
            return []
        lent = loans.prolonged(until)
        if lent:
            site.standing.gate.prolong(until)
            group.gate.prolong(until)
        return lent

    def end(self, over: Iterable[Loan], batch: Batch) -> None:
        """End the loans in `over`, which a heartbeat did not extend. If a borrower did not return its slots in time,
        give up the site's address, so that the site is parked.
        """
        for loan in over:
            if (loans := self._loans.get(loan.site)) is not None:
                loans.end(loan)
        for name, loans in self._loans.items():
            site, overdue = self._sites.by_name[name], loans.overdue(batch.at)
            for loan in overdue:
                _take_back(site, loans, loan, batch.at + site.standing.delay_s())
            if overdue and site.place.group is not None:
                self._addresses.quit(site.place.group)

    def returned(self, letter: SlotReturn, batch: Batch) -> None:
        """Take back the slots that a borrower returns. If the site refused the borrower's requests, recall all loans of
        the site and lend no slots for a while.
        """
        site = self._sites.by_name.get(letter.site)
        if site is None:
            return
        loans = self._loans.get(letter.site)
        loan = None if loans is None else loans.of(letter.borrower)
        if loans is not None and loan is not None and letter.token == loan.token:
            if letter.failures:
                site.standing.join(SiteState(next_at=letter.next_at, failures=letter.failures))
                loans.recall(site.standing.rests_until, batch)
                site.keep(batch)
            if letter.over:
                _take_back(site, loans, loan, letter.next_at)
                batch.freed[loan.name] = batch.at
            site.pages.refresh()
        self._sites.note(site, batch.at)

    # -------------------------------------------------------------- as borrower

    def sites(self) -> frozenset[str]:
        """Return the sites whose slots this ant borrows."""
        return frozenset(self._borrowed)

    def borrow(self, borrowed: Sequence[BorrowedSlots], batch: Batch) -> None:
        """Begin to use the slots that other ants lend to this ant, as read by the last heartbeat. Stop using slots that
        are no longer lent.

        Fetches of a borrowed site are cancelled before the loan ends, because the ant's term ends no later than the
        loan.
        """
        others = self._others
        given = {each.loan.site: each for each in borrowed}
        for name in self.sites():
            site, now = self._sites.by_name[name], given.pop(name, None)
            group = site.place.group
            assert group is not None
            if now is not None and now.loan == self._borrowed[name].loan:
                self._borrowed[name] = now
            if now is None or now.loan != self._borrowed[name].loan or self._ends_soon(now.loan, batch.at):
                self._addresses.quit(group)
            if not group.is_leaving or site.is_under_way():
                others.term.bound(self._borrowed[name].until, at=batch.at)
        # The claim of a loan remains until the holder has read that the slots were given back.
        self._given_back &= {each.loan for each in given.values()}
        for each in given.values():
            if each.loan not in self._given_back and each.record is not None:
                self._enter(each, each.record, batch)

    def _ends_soon(self, loan: Loan, at: float) -> bool:
        """Return whether a loan ends so soon that its slots must be given back now."""
        return loan.ends_at < at + 2 * self._others.lease_s

    def _enter(self, borrowed: BorrowedSlots, record: SiteRecord, batch: Batch) -> None:
        loan, state = borrowed.loan, remembered(record)
        state = msgspec.structs.replace(state, next_at=max(loan.opens_at, state.next_at if state.failures else 0.0))
        lease = SiteLease(loan.site, loan.token, borrowed.until, record)
        site = ActiveSite(loan.site, state, self._context, lease=lease, borrowed_slots=loan.slots)
        if site.name in self._sites.by_name or site.files.lacks_robots(batch.at):
            self._give_back(borrowed, site, batch)
            return
        if not self._others.term.hold_until(borrowed.until, at=batch.at):
            return
        self._borrowed[site.name] = borrowed
        self._sites.enter(site)
        group = self._addresses.add_lent(site.place, loan.address, loan.slots)
        self._sites.file_requests.route(site.resolved(group, batch), batch)
        self._sites.note(site, batch.at)
        self._context.metrics.inc("ant/loans_taken")

    def refused(self, site: ActiveSite, fetched: FetchResult, batch: Batch) -> None:
        """Recall all loans of a site that refused a request or did not answer. If the site is borrowed, stop fetching
        from it, and tell the ant that lent the slots by a letter.
        """
        if loans := self._loans.get(site.name):
            loans.recall(site.standing.rests_until, batch)
        group, borrowed = site.place.group, self._borrowed.get(site.name)
        if group is not None and borrowed is not None and not group.is_leaving:
            batch.release(site.hand.flush())
            next_at = max(site.standing.rests_until, fetched.at)
            _write(borrowed, site, batch, next_at=next_at, over=False)
            self._addresses.quit(group)

    def leave(self, site: ActiveSite, batch: Batch) -> None:
        """Give a borrowed site's slots back to the lender, because the site has left the active list."""
        self._give_back(self._borrowed.pop(site.name), site, batch)

    def lose(self, site: ActiveSite) -> None:
        """Remove a borrowed site that another ant took over."""
        self._borrowed.pop(site.name, None)

    def forget(self, site: ActiveSite) -> None:
        """Forget the loans of a site that has left the active list."""
        self._loans.pop(site.name, None)

    def _give_back(self, borrowed: BorrowedSlots, site: ActiveSite, batch: Batch) -> None:
        batch.release(site.hand.flush())
        _write(borrowed, site, batch, next_at=site.standing.next_at(batch.at), over=True)
        self._given_back.add(borrowed.loan)


def _take_back(site: ActiveSite, loans: Loans, loan: Loan, open_at: float) -> None:
    assert site.place.group is not None
    loans.take_back(loan, site.standing, site.place.group, open_at)


def _write(borrowed: BorrowedSlots, site: ActiveSite, batch: Batch, *, next_at: float, over: bool) -> None:
    """Send a letter about borrowed slots to the ant that lends them."""
    loan = borrowed.loan
    letter = SlotReturn(loan.site, loan.borrower, loan.token, next_at, site.standing.failures, over)
    batch.letters.append((borrowed.holder, letter))
