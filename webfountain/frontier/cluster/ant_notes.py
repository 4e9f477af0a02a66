"""Define the notes that ants store with their claims, the sums over all notes, and the names of claims.

Each ant stores an `AntNote` with its claim at every heartbeat. If there are many ants, one of them reads all notes, and
stores their sums (`Colony`) with the claim on its role (`membership`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.sites.domain_shares import FetchCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.store.answers import Claim
    from webfountain.store.shared_contract import Claims

__all__ = [
    "ADDRESS",
    "ANT",
    "BUSY",
    "COUNTING",
    "FREE",
    "GUEST",
    "LOAN",
    "ROLE",
    "AntNote",
    "Colony",
    "CoreLoad",
    "ants_of",
    "strike_off",
]

ANT: Final = "ant/"
"""Prefix of the claim that each running ant holds on its name, `ant/NAME`, with an `AntNote` as the claim's note."""
ROLE: Final = "role/controller"
"""Claim on the role of the controller, with a `ControllerState` as its note."""
COUNTING: Final = "role/counting"
"""Claim on the role of the ant that reads the notes of all ants, with a `Colony` as its note."""
ADDRESS: Final = "address/"
"""Prefix of the claim on an address at which an ant has sites."""
GUEST: Final = "guest/"
"""Prefix of the claim on a site from which an ant requests files without a site lease."""
LOAN: Final = "loan/"
"""Prefix of the claim on slots that are lent to another ant, `loan/BORROWER/SITE`, with a `Loan` as the claim's note.
"""
_DEAD_S: Final = 3600.0
"""A claim is removed from the store this long after its end, in seconds."""
BUSY: Final = 0.7
"""An ant that uses more than this share of a CPU core counts as overloaded."""
FREE: Final = 0.3
"""An ant that uses less than this share of a CPU core can do more work."""


def strike_off(claims: Claims, claim: Claim, *, owner: str, at: float) -> None:
    """Remove a claim that expired long ago."""
    if claim.until < at - _DEAD_S:
        claims.claim([claim.name], owner=owner, until=at, at=at)
        claims.drop({claim.name: at}, owner=owner, at=at)


class AntNote(msgspec.Struct, frozen=True, array_like=True):
    """The state of an ant, reported at each heartbeat."""

    at: float
    """Time of the note, UTC seconds by the ant's clock."""
    sites: int = 0
    in_flight: int = 0
    idle_since: float | None = None
    """Time at which the ant became idle, or None if the ant is busy. An idle ant has nothing in flight and nothing due
    soon.
    """
    counts: dict[str, float] = {}
    """The ant's metrics."""
    spent: FetchCounts | None = None
    """The ant's fetches in the current time period, if the shares of domains are limited."""
    load: float = 1.0
    """CPU seconds that the ant used per second since its last heartbeat."""
    lacks_room: bool = False
    """True if the ant fetches nothing because its disk is full."""
    addresses: int = 0
    """Number of addresses at which the ant has sites."""
    policy: str = ""
    """Digest of the ant's policy file, or "" without a file."""


class Colony(msgspec.Struct, frozen=True, array_like=True):
    """Sums of the counts in the notes of all running ants."""

    ants: int = 1
    sites: int = 0
    idle_since: float | None = None
    """A time at which all ants were idle at once, UTC seconds, or None."""
    spent: FetchCounts | None = None
    free: tuple[str, ...] = ()
    """Names of some ants with little work."""
    short: int = 0
    """Number of ants that fetch nothing, because their disks are full."""
    fewest: int = 0
    """The smallest number of sites that any ant with free disk space has."""
    policies: int = 1
    """Number of different policy files that the ants use."""

    @classmethod
    def of(cls, notes: Sequence[AntNote]) -> Colony:
        """Add up the ants' notes. The caller sets `Colony.free`."""
        latest = max((-inf if note.idle_since is None else note.idle_since for note in notes), default=-inf)
        idle = all(note.idle_since is not None and note.at >= latest for note in notes)
        spent = FetchCounts.of(note.spent for note in notes if note.spent is not None)
        sites, short = sum(note.sites for note in notes), sum(note.lacks_room for note in notes)
        fewest = min((note.sites for note in notes if not note.lacks_room), default=0)
        policies = len({note.policy for note in notes})
        return cls(
            len(notes),
            sites,
            latest if idle and notes else None,
            spent,
            short=short,
            fewest=fewest,
            policies=policies,
        )

    @property
    def takers(self) -> int:
        """Number of ants that can take sites, at least 1."""
        return max(self.ants - self.short, 1)


def ants_of(claims: Claims, at: float) -> dict[str, AntNote]:
    """Return the notes of the ants that are running at `at`, by name."""
    return {
        claim.owner: msgspec.msgpack.decode(claim.note, type=AntNote)
        for claim in claims.claims("ant")
        if claim.until > at
    }


class CoreLoad:
    """Measures the CPU load of this process. `share` is the number of CPU seconds per second between the last two calls
    of `measure`.
    """

    def __init__(self, steady: Callable[[], float], cpu: Callable[[], float]) -> None:
        self._steady = steady
        self._cpu = cpu
        self._measured = (steady(), cpu())
        self.share = 1.0

    def measure(self) -> None:
        (steady, cpu), self._measured = self._measured, (self._steady(), self._cpu())
        if (seconds := self._measured[0] - steady) > 0.0:
            self.share = (self._measured[1] - cpu) / seconds
