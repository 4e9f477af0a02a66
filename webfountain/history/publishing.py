"""Storage of live snapshots: a file in the store's folder, or one claim per process on the store's server.

A file is replaced as a whole, so no reader sees a part of a snapshot. A claim expires after its process ends; the
process that keeps the history then removes it (`drop_dead`). A snapshot that cannot be read counts as absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.history.live import STALE_S, LiveSnapshot
from webfountain.private_files import replaced

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from webfountain.store.shared_contract import Claims

__all__ = ["FILE", "ClaimPlace", "FilePlace", "LivePlace", "drop_dead", "read_claims", "read_file"]

FILE: Final = "live.json"
"""Name of the snapshot file in the store's folder."""
MAX_BYTES: Final = 4_000_000
"""Maximum size of the snapshot file, in bytes: readers ignore a larger file."""
KIND: Final = "live"
_decoder = msgspec.json.Decoder(LiveSnapshot)


class LivePlace:
    """Place where a process stores its snapshots. The methods may block, so call them outside the event loop.

    This base class stores nothing, because no other process can read a store in memory.
    """

    def put(self, snapshot: LiveSnapshot) -> None:
        """Store a snapshot in place of the last one."""

    def remove(self) -> None:
        """Remove the process's last snapshot when the process ends."""


class FilePlace(LivePlace):
    """Storage of a process's snapshots in a file of the store's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def put(self, snapshot: LiveSnapshot) -> None:
        """Replace the snapshot file; raise OSError if the write fails."""
        with replaced(self._path) as file:
            file.write(msgspec.json.encode(snapshot))

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class ClaimPlace(LivePlace):
    """Storage of a process's snapshots on the store's server, in the claim ``live/OWNER``. Each call of a method takes
    one round trip."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._last: LiveSnapshot | None = None

    def put(self, snapshot: LiveSnapshot) -> None:
        """Extend the claim and store the snapshot with it."""
        name, self._last = f"{KIND}/{snapshot.owner}", snapshot
        note = msgspec.json.encode(snapshot)
        until = snapshot.at + STALE_S
        self._claims.claim([name], owner=snapshot.owner, until=until, at=snapshot.at, notes={name: note})

    def remove(self) -> None:
        """Release the claim."""
        if self._last is not None:
            owner, at = self._last.owner, self._last.at
            self._claims.drop({f"{KIND}/{owner}": at}, owner=owner, at=at)


def read_file(folder: Path) -> list[LiveSnapshot]:
    """Return the last snapshot in a store's folder, or [] if none can be read."""
    try:
        with (folder / FILE).open("rb") as file:
            return _readable([file.read(MAX_BYTES)])
    except OSError:
        return []


def read_claims(claims: Claims) -> list[LiveSnapshot]:
    """Return the last snapshot of each live process from a store on a server, in one round trip."""
    return _readable([claim.note for claim in claims.claims(KIND) if claim.note])


def drop_dead(claims: Claims, *, owner: str, at: float) -> int:
    """Remove the claims of ended processes, and return how many there were. If no process has ended, the call takes one
    round trip.
    """
    dead = [claim.name for claim in claims.claims(KIND) if claim.until + STALE_S < at]
    if dead:
        taken = claims.claim(dead, owner=owner, until=at, at=at)
        claims.drop({claim.name: at for claim in taken if claim.owner == owner}, owner=owner, at=at)
    return len(dead)


def _readable(found: Iterable[bytes]) -> list[LiveSnapshot]:
    snapshots = []
    for data in found:
        try:
            snapshots.append(_decoder.decode(data))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # written by another version
    return snapshots
