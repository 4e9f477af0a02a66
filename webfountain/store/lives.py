"""The contract for detecting set-backs: the server of a shared store may lose its latest steps.

`store/shared/lives.py` implements it. A store that cannot go back in time while it is open has `NoLives`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.store.answers import SetBack

__all__ = ["Lives", "NoLives"]


class Lives(Protocol):
    """The detector of set-backs: the server of a store may lose its latest steps while a process uses it."""

    def take_set_back(self) -> SetBack | None:
        """Return the set-back that happened since the last call, or None. Any step may detect one."""
        ...

    def before_loss(self, call: Callable[[], object]) -> None:
        """Register a function that is called before sites are given up after a loss, in the thread that detects the
        loss."""
        ...


class NoLives:
    """The `Lives` of a store without a server: it detects nothing."""

    def take_set_back(self) -> None:
        """Return None: there is no set-back."""

    def before_loss(self, call: Callable[[], object]) -> None:
        """Do nothing: the call would never be made."""
