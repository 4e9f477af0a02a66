"""Find the example policy files: in the package if installed from a wheel, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["example"]

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PLACES: Final = (_PACKAGE / "policies", _PACKAGE.parent / "policies")


def example(name: str) -> Path:
    """Return the path of an example such as ``demo.toml``; if it is missing, the path where it would be installed."""
    return next((place / name for place in _PLACES if (place / name).is_file()), _PLACES[0] / name)
