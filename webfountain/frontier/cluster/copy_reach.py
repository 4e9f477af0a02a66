"""Check whether this ant can read the copies of all other ants.

If it cannot, the data needed to detect a change are stored with a page's record (`pages.examiner`), because the old
copy may be unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.store.shared_contract import Claims

__all__ = ["CopyReach"]


class CopyReach:
    """The last result of the check, with the number of ants for which it was made.

    `reaches` returns whether this ant can read the copies of the ant with a number; None: this ant stores no copies.
    """

    def __init__(self, claims: Claims, reaches: Callable[[int], bool] | None) -> None:
        self._claims = claims
        self._reaches = reaches
        self._ants = 0
        self._is_apart = False

    def is_apart(self) -> bool:
        """Return whether the copies of some ant cannot be read here. Any thread may call this."""
        return self._is_apart

    def check(self, ants: int) -> None:
        """Check again if the number of ants has changed. Once copies could not be read, the result stays so. It runs
        in the heartbeat's thread.
        """
        if self._reaches is not None and not self._is_apart and ants != self._ants:
            places = {int(claim.name.partition("/")[2]): claim.owner for claim in self._claims.claims("repository")}
            # An ant that claimed a number in a folder of this machine may not have created its own folder yet.
            here = {place for number, place in places.items() if self._reaches(number)}
            self._is_apart = not here.issuperset(places.values())
        self._ants = ants
