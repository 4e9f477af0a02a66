"""Letters between ants: a site that follows its address, pages to erase, the end of a loan.

Place in the walk: the active list writes them into a batch, and the worker sends and receives them
(`cluster.ant_stage`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.inbox.notes import Drain, ForgetNote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Letter", "SlotReturn", "TakeSiteNote", "letters_of"]

logger = logging.getLogger(__name__)


class TakeSiteNote(msgspec.Struct, frozen=True, tag="take", tag_field="note"):
    """A letter to the ant that holds an address: take over this site, which is at the address."""

    site: str


class SlotReturn(msgspec.Struct, frozen=True, tag="returned", tag_field="note"):
    """A letter from a borrower to the holder of a site (`cluster.loans`): the slots are given back, or will be because
    the site refused a request.
    """

    site: str
    borrower: str
    token: int
    next_at: float
    """Earliest time of the next request in these slots; if not `over`, at the whole site."""
    failures: int = 0
    """Number of refusals in a row."""
    over: bool = True


Letter = TakeSiteNote | ForgetNote | SlotReturn | Drain
"""Any letter between ants (`Claims.post`): a site that follows its address, pages to erase, the end of a loan, or a
request to end.
"""

_letters: msgspec.json.Decoder[Letter] = msgspec.json.Decoder(TakeSiteNote | ForgetNote | SlotReturn | Drain)


def letters_of(found: Iterable[bytes]) -> Iterator[Letter]:
    """Return the decoded letters. Invalid ones are dropped, with a line in the log."""
    for data in found:
        try:
            yield _letters.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("Cannot read a letter from another ant: %.200s", error)
