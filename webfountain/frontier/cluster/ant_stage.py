"""The exchange between ants with each batch: claims on addresses, and letters.

Place in the walk: a stage of the store worker; used only if the store is shared. It acts after the sites that leave
have been parked. A letter says that a site follows its address to another ant, that a page was forgotten, or that
borrowed slots are given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.inbox.letters import SlotReturn, TakeSiteNote, letters_of
from webfountain.frontier.inbox.notes import Drain, ForgetNote, erase
from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.inbox.notes import CopyEraser
    from webfountain.frontier.worker.copies import Takedowns
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Claims

__all__ = ["AntStage"]


class AntStage(Stage):
    """The claims and letters of the ant `owner`. `left_behind` erases copies of ants that no longer run; None: there
    are none.
    """

    def __init__(
        self,
        claims: Claims,
        store: FrontierStore,
        takedowns: Takedowns,
        *,
        owner: str,
        lease_s: float,
        left_behind: CopyEraser | None,
    ) -> None:
        self._claims = claims
        self._store = store
        self._takedowns = takedowns
        self._owner = owner
        self._lease_s = lease_s
        self._left_behind = left_behind

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        claims, until = self._claims, batch.at + self._lease_s
        if batch.freed:
            claims.drop(batch.freed, owner=self._owner, at=batch.at)
        self.sign_off(batch)
        if batch.claims:
            result.claims = claims.claim(batch.claims, owner=self._owner, until=until, at=batch.at)
        if batch.inbox and (letters := list(letters_of(claims.collect(self._owner)))):
            result.returned = [letter for letter in letters if isinstance(letter, SlotReturn)]
            sites = sorted({letter.site for letter in letters if isinstance(letter, TakeSiteNote)})
            result.activated += self._store.sites.enlist(sites, owner=self._owner, until=until, at=batch.at)
            result.is_drained |= any(isinstance(letter, Drain) for letter in letters)
            if barred := [letter for letter in letters if isinstance(letter, ForgetNote)]:
                self._takedowns.erase(barred)

    def sign_off(self, batch: Batch) -> None:
        """Send a batch's letters to their ants."""
        for owner in sorted({owner for owner, _ in batch.letters}):
            self._claims.post(owner, [msgspec.json.encode(letter) for to, letter in batch.letters if to == owner])

    def drain(self, ants: Sequence[str]) -> None:
        """Send other ants the request to give up their sites and end."""
        for ant in ants:
            self._claims.post(ant, [msgspec.json.encode(Drain(ant))])

    def announce(self, barred: Sequence[ForgetNote]) -> None:
        """Tell other ants which pages were forgotten. Each ant erases its own copies; this ant also erases those of
        ants that no longer run.
        """
        letters = [msgspec.json.encode(note) for note in barred]
        for ant in self._claims.claims("ant"):
            if ant.owner != self._owner:
                self._claims.post(ant.owner, letters)
        if self._left_behind is not None:
            erase(self._left_behind, barred, self._store.pages)
