"""What one process needs of the store next: leases for hungry sites, more sites, chores; and who leaves.

Place in the walk: where the loop thread's side of a batch (`work.Work`) is written. It looks at the ant and at the
clock and decides no page; the worker thread carries it out.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.frontier.agenda import Agenda
    from webfountain.frontier.planning.controller import Controller
    from webfountain.frontier.planning.follower import PlanFollower
    from webfountain.frontier.sites.ant import Ant
    from webfountain.frontier.sites.errands import Errands
    from webfountain.frontier.store_worker import Work

__all__ = ["Orders"]


class Orders:
    """Writes what a batch asks for. `sites_due` is when the first inactive site is due, as the store said last."""

    def __init__(
        self, *, ant: Ant, errands: Errands, follower: PlanFollower, controller: Controller | None, agenda: Agenda
    ) -> None:
        self._ant = ant
        self._errands = errands
        self._follower = follower
        self._controller = controller
        self._agenda = agenda
        self.sites_due: float = -inf

    def write(self, work: Work, at: float, *, congested: bool, immediate: bool, idling: bool) -> None:
        """Leases, sites and the chores that have come round.

        Parameters
        ----------
        congested : the worker is behind, so nothing more is leased
        immediate : the store has URLs on its immediate queue
        idling : the crawl ends when nothing is left, and nothing is under way
        """
        self._ant.ripen(at)
        self._ant.sweep(at)
        if self._agenda.due("robots", at):
            self._renew_robots(work, at)
        if not congested:
            work.orders = self._ant.orders(at)
        if self._agenda.due("renew", at):
            work.renewals = [site.lease for site in self._ant.sites.values()]
        self._follow_plan(work, at)
        work.inbox = self._agenda.due("inbox", at)
        work.tidy = self._agenda.due("tidy", at)
        work.immediate = immediate or work.inbox
        if self.sites_due <= at:
            work.room = self._ant.room()
        if idling:
            work.look_for_waiting = self._agenda.due("waiting", at)

    def _follow_plan(self, work: Work, at: float) -> None:
        """The choice of urgent pages, corrections, and the census when it is time to plan."""
        starved = self._ant.starved()
        work.wanted = self._follower.schedule.wanted(at, starved=starved)
        if self._follower.check(at, starved=starved):
            self._ant.freshen(list(self._ant.sites))
        if self._controller is not None:
            work.census_since = self._controller.census_since(at)

    def _renew_robots(self, work: Work, at: float) -> None:
        """Ask again for the robots.txt of sites that stay active past its life; what is in their hand must wait."""
        for site in self._errands.outdated(at):
            work.released += self._ant.empty_hand(site)
            self._errands.prepare(site, at)

    def let_leave(self, work: Work, at: float) -> None:
        """Park the sites that are done, or that must make room."""
        for site, due in self._ant.leavers(at, others_wait=self.sites_due <= at):
            left = self._ant.leave(site, due)
            work.parked.append(left.parked)
            work.released += left.unused
            self.sites_due = min(self.sites_due, left.parked.due)
