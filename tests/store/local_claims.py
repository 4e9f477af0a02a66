"""The claims and letters within one process: the reference for those of the shared store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store.answers import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LocalClaims"]


class LocalClaims:
    """The `Claims` in a dictionary, for several crawlers of one process, as in tests."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._letters: dict[str, list[bytes]] = {}

    def claim(
        self, names: Sequence[str], *, owner: str, until: float, at: float, notes: Mapping[str, bytes] | None = None
    ) -> list[Claim]:
        """Take names that are free."""
        return [self._claim(name, owner, until, at, (notes or {}).get(name, b"")) for name in names]

    def drop(self, names: Mapping[str, float], *, owner: str, at: float) -> None:
        """Give up names."""
        for name, until in names.items():
            held = self._claims.get(name)
            if held is not None and held.owner == owner:
                del self._claims[name]
                if until > at:
                    self._claims[name] = Claim(name, "", until)

    def holders(self, names: Sequence[str], *, at: float) -> list[Claim | None]:
        """Return the claims on names."""
        found = (self._claims.get(name) for name in names)
        return [held if held is not None and held.until > at else None for held in found]

    def claims(self, kind: str) -> list[Claim]:
        """Return the claims of a kind."""
        return [held for name, held in sorted(self._claims.items()) if name.startswith(f"{kind}/")]

    def post(self, owner: str, letters: Sequence[bytes]) -> None:
        """Leave letters for a process."""
        self._letters.setdefault(owner, []).extend(letters)

    def collect(self, owner: str) -> list[bytes]:
        """Return and delete the letters of a process."""
        return self._letters.pop(owner, [])

    def time(self) -> float | None:
        """Return None: there is no server."""
        return None

    def end_within(self, seconds: float) -> None:
        """Do nothing: there is no server to wait for."""

    def _claim(self, name: str, owner: str, until: float, at: float, note: bytes) -> Claim:
        held = self._claims.get(name)
        if held is not None and held.owner != owner and held.until > at:
            return held
        lost_by = held.owner if held is not None and held.owner not in ("", owner) else None
        self._claims[name] = Claim(name, owner, until, note)
        return Claim(name, owner, until, note, lost_by)
