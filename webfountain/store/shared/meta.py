"""The description of a shared store in one key: its owner, format, units and the name of its change log.

Place in the walk: read when the store is opened. It decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from webfountain.store.shared.connection import ServerConnection

__all__ = ["MetaEntry", "SharedMeta"]


class SharedMeta(msgspec.Struct, frozen=True):
    """The value of the key."""

    format: int
    collection: str
    period_s: Annotated[float, msgspec.Meta(gt=0)]
    fastest_s: Annotated[float, msgspec.Meta(gt=0)]
    shards: Annotated[int, msgspec.Meta(ge=1, le=16_384)]
    log: str
    """Name of the change log, used in the log's cursors."""
    id: str = ""
    """Name of the store, which never changes: a store that is made anew on an emptied server has another one."""
    change: str = ""
    """Name of the present revision; "" for none."""
    unit: float = 0.0
    """During a conversion: the unit of the bucket bytes that are not yet converted, s."""
    correction: tuple[float, float] | None = None
    """During a correction of times: its `at` and `ahead` (`ClockCorrection`)."""


class MetaEntry:
    """Reads and writes the key of the description. Each step is one round trip."""

    def __init__(self, connection: ServerConnection, key: bytes) -> None:
        self._connection = connection
        self.key = key

    def read(self) -> SharedMeta | None:
        """Return the description, or None if there is no store.

        Raises
        ------
        StoreError
            if the key contains something else.
        """
        found = self._connection.ask(self.key, "GET", self.key)
        try:
            return None if found is None else msgspec.json.decode(found, type=SharedMeta)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{self._connection.shown}: {self.key.decode(errors='replace')} does not describe a store ({error}): "
                "restore it from a backup, or give another ?prefix="
            ) from None

    def add(self, meta: SharedMeta) -> bool:
        """Write the first value. Return False if there already is one."""
        return self._connection.ask(self.key, "SET", self.key, msgspec.json.encode(meta), "NX") is not None

    def replace(self, meta: SharedMeta) -> None:
        """Write another value."""
        self._connection.ask(self.key, "SET", self.key, msgspec.json.encode(meta))
