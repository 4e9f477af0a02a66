"""The names of the claims that ants make on a shared store, and the removal of old claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webfountain.store.answers import Claim
    from webfountain.store.shared_contract import Claims

__all__ = ["ADDRESS", "ANT", "COUNTING", "GUEST", "LOAN", "ROLE", "strike_off"]

ANT: Final = "ant/"
"""Claim of an ant that is alive; its note is an `AntNote`."""
ROLE: Final = "role/controller"
"""Role of the ant that plans; its note is a `ControllerState`."""
COUNTING: Final = "role/counting"
"""Role of the ant that reads all notes if there are many ants; its note is their sum, a `Colony`."""
ADDRESS: Final = "address/"
"""Claim of an address at which an ant has sites."""
GUEST: Final = "guest/"
"""Claim of a site from which an ant requests files without a site lease."""
LOAN: Final = "loan/"
"""Claim of slots that an ant lends: `loan/BORROWER/SITE`; its note is a `Loan`."""
_DEAD_S: Final = 3600.0
"""A claim is removed when it expired this many seconds ago."""


def strike_off(claims: Claims, claim: Claim, *, owner: str, at: float) -> None:
    """Remove a claim that expired long ago: take it over, then drop it."""
    if claim.until < at - _DEAD_S:
        claims.claim([claim.name], owner=owner, until=at, at=at)
        claims.drop({claim.name: at}, owner=owner, at=at)
