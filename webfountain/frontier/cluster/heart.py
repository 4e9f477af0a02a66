"""Request the heartbeats of one ant in the loop thread, and apply their results.

Before its next term begins, the ant drops sites and addresses that other ants have taken over (`membership`). Each ant
reports a digest of its policy file, and one ant logs a warning if the files differ.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import xxhash

from webfountain.frontier.cluster.ant_notes import AntNote
from webfountain.frontier.cluster.membership import ControllerState, surplus
from webfountain.frontier.stage import Order

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.batch import BatchResult
    from webfountain.frontier.cluster.membership import HeartbeatRequest, HeartbeatResult, Membership
    from webfountain.frontier.orders import OpenBatch
    from webfountain.frontier.planning.planner import Planner
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.sites.domain_shares import DomainShares
    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection

__all__ = ["Heart", "PolicyFiles", "digest_of"]

logger = logging.getLogger(__name__)
BEATS: Final = 2
"""A warning is logged only if the ants' policy files differ for this many heartbeats, because the files always differ
shortly after an edit.
"""


class Heart(Order):
    """Requests an ant's heartbeats, and applies the results."""

    def __init__(
        self,
        others: Membership,
        *,
        sites: ActiveList,
        progress: Progress,
        planner: Planner,
        batches: OpenBatch,
        metrics: Metrics,
        shares: DomainShares | None,
        collection: Collection,
    ) -> None:
        self._others = others
        self.term = others.term
        self._sites = sites
        assert sites.claims is not None, "ants that share a store claim addresses"
        self._claims = sites.claims
        self._progress = progress
        self._planner = planner
        self._batches = batches
        self._metrics = metrics
        self._shares = shares
        self._policy = digest_of(collection)
        self._policies = PolicyFiles()
        self._short = 0  # number of ants with full disks in the last log line

    def has_lapsed(self) -> bool:
        return self.term.left_s() <= 0.0

    def next_at(self) -> float:
        """Return when the next heartbeat is due, UTC seconds."""
        return self._others.next_at()

    def beat(self) -> Callable[[], HeartbeatResult] | None:
        """Return a function that carries out a heartbeat, or None if no heartbeat is due. The caller runs the function
        in another thread, and passes the result to `apply`.
        """
        at = self._batches.now()
        return partial(self._others.heartbeats.carry_out, self._request(at)) if self._others.is_due(at) else None

    def _request(self, at: float) -> HeartbeatRequest:
        others, sites, lending = self._others, self._sites, self._sites.lending
        leases = sites.leases()
        note = AntNote(
            at,
            sites=len(leases),
            in_flight=len(sites.flights),
            counts=self._metrics.snapshot(),
            spent=None if self._shares is None else self._shares.spent(),
            lacks_room=self._progress.lacks_room,
            addresses=len(sites.addresses),
            policy=self._policy,
        )
        return others.request(
            note,
            leases=leases,
            claimed=self._claims.held(),
            controller=ControllerState(self._planner.follower.schedule.price, self._planner.number),
            loans=() if lending is None else lending.prolonged(at + others.lease_s),
            borrowed_sites=None if lending is None else lending.sites(),
        )

    def apply(self, result: HeartbeatResult) -> None:
        """Apply the result of a heartbeat: drop lost sites and claims, then begin a new term."""
        others, sites, batch = self._others, self._sites, self._batches.gather()
        if self.has_lapsed():
            self._claims.leave_guests(batch)
        for lease in result.lost:
            sites.departures.lose_lease(lease.site, lease.token, batch)
        sites.renew(result.renewed)
        for name in result.lost_claims:
            self._claims.lost(name, batch)
        if (lending := sites.lending) is not None:
            lending.end(result.over, batch)
        others.take_in(result)
        if lending is not None:
            lending.borrow(result.borrowed, batch)
            lending.lend(batch.at)
        if self._shares is not None and (spent := result.request.note.spent) is not None:
            sites.flights.wake(self._shares.take_in(result.colony.spent, spent))
        self._planner.follower.share = self._progress.share = others.share()
        self._planner.obey(result.plan, None if result.controller is None else result.controller.price)
        if others.counts:
            self._compare()
        self._balance()

    def _compare(self) -> None:
        """Log the number of ants with full disks if it has changed, and a warning if the ants' policy files differ."""
        colony = self._others.colony
        if colony.short != self._short:
            self._short = colony.short
            logger.warning("Ants with a full disk: %d of %d", self._short, colony.ants)
        self._policies.compare(colony.policies)

    def _balance(self) -> None:
        """Give up some addresses if this ant has too many sites, and all addresses if its disk is full."""
        mine, colony = len(self._sites.leases()), self._others.colony
        if self._progress.lacks_room and colony.short < colony.ants:
            self._sites.addresses.let_go(mine)
        elif many := surplus(mine, self._others.fair(), colony.fewest):
            self._sites.addresses.let_go(many)

    def absorbed(self, result: BatchResult) -> None:
        batch = self._batches.gather()
        if result.set_backs:
            self._others.lapse(batch.at)
        self._others.rest(resting=self._progress.is_resting(batch), at=batch.at)

    def adopt(self, collection: Collection) -> None:
        self._policy = digest_of(collection)


def digest_of(collection: Collection) -> str:
    """Return a digest of a policy file, or "" if the collection has no file."""
    return xxhash.xxh3_64_hexdigest(collection.text.encode()) if collection.text else ""


class PolicyFiles:
    """Logs that the ants use different policy files."""

    def __init__(self) -> None:
        self._beats = 0

    def compare(self, many: int) -> None:
        """Log a warning if the ants have used different policy files for `BEATS` heartbeats. `many` is the number of
        different policy files that the ants use now.
        """
        self._beats = self._beats + 1 if many > 1 else 0
        if self._beats == BEATS:
            logger.warning(
                "The ants of this store use %d different policy files. Each page is fetched by the rules of the ant "
                "that holds its site. Give all ants the same file",
                many,
            )
