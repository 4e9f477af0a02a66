"""The published values of the reference store."""

from __future__ import annotations

__all__ = ["MemoryBoard"]


class MemoryBoard:
    """The `Board` in a dictionary."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def value(self, name: str) -> bytes | None:
        """Return the value in force under a name."""
        return self._values.get(name)

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value."""
        self._values[name] = value

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none."""
        return self._values.setdefault(name, value)

    def items(self) -> list[tuple[str, bytes]]:
        """Return all names and values, in order of name."""
        return sorted(self._values.items())
