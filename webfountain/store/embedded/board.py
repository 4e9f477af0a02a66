"""The published values of the embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store.embedded.keys import VALUE

if TYPE_CHECKING:
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.steps import Steps

__all__ = ["EmbeddedBoard"]


class EmbeddedBoard:
    """The `Board` of the embedded store."""

    def __init__(self, disk: Disk, steps: Steps) -> None:
        self._disk = disk
        self._steps = steps

    def value(self, name: str) -> bytes | None:
        """Return the present value of a name. One get."""
        self._disk.refresh()
        return self._disk.get(VALUE + name.encode())

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value. One put."""
        with self._steps.begin() as batch:
            batch.put(VALUE + name.encode(), value)

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none. One get, and a put the first time. This is atomic because there is only one
        writer.
        """
        before = self.value(name)
        if before is None:
            self.put_value(name, value)
        return value if before is None else before
